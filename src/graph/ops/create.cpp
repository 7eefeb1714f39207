// New tensors from numbers.
#include "graph/ops.h"

namespace tessera::graph::ops {
namespace {

constexpr OpRecord records[] = {
    {"aten.full", OpKind::create},         {"aten.full_like", OpKind::create},
    {"aten.fill", OpKind::create},         {"aten.zeros", OpKind::create},
    {"aten.zeros_like", OpKind::create},   {"aten.ones", OpKind::create},
    {"aten.ones_like", OpKind::create},    {"aten.new_zeros", OpKind::create},
    {"aten.new_ones", OpKind::create},     {"aten.new_full", OpKind::create},
    {"aten.empty", OpKind::create},        {"aten.empty_like", OpKind::create},
    {"aten.arange", OpKind::create},       {"aten.linspace", OpKind::create},
    {"aten.eye", OpKind::create},          {"aten.scalar_tensor", OpKind::create},
    {"aten.tril_indices", OpKind::create}, {"aten.triu_indices", OpKind::create},
};

}  // namespace

extern const OpFamily create{"create", records};

}  // namespace tessera::graph::ops
