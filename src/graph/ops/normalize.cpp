// Normalizations: statistics along some dims, applied to every element.
#include "graph/ops.h"

namespace tessera::graph::ops {
namespace {

/// Two passes of arithmetic over the elements, by the usual count of 5 an element.
double five_each(const Graph& g, const Node& n) {
  return 5.0 * static_cast<double>(g.value(n.outputs.front()).type.numel());
}

constexpr OpRecord records[] = {
    {"aten.layer_norm", OpKind::normalize, {}, five_each},
    {"aten.native_layer_norm", OpKind::normalize, {}, five_each},
    {"aten.rms_norm", OpKind::normalize, {}, five_each},
    {"aten._fused_rms_norm", OpKind::normalize, {}, five_each},
    {"aten.softmax", OpKind::normalize, {}, five_each},
    {"aten._softmax", OpKind::normalize, {}, five_each},
    {"aten._safe_softmax", OpKind::normalize, {}, five_each},
    {"aten.log_softmax", OpKind::normalize, {}, five_each},
    {"aten._log_softmax", OpKind::normalize, {}, five_each},
    {"aten.batch_norm", OpKind::normalize, {}, five_each},
    {"aten._native_batch_norm_legit", OpKind::normalize, {}, five_each},
    {"aten._native_batch_norm_legit_functional", OpKind::normalize, {}, five_each},
    {"aten._native_batch_norm_legit_no_training", OpKind::normalize, {}, five_each},
    {"aten.native_batch_norm", OpKind::normalize, {}, five_each},
    {"aten.group_norm", OpKind::normalize, {}, five_each},
    {"aten.native_group_norm", OpKind::normalize, {}, five_each},
    {"aten.instance_norm", OpKind::normalize, {}, five_each},
};

}  // namespace

extern const OpFamily normalize{"normalize", records};

}  // namespace tessera::graph::ops
