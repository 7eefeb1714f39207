// Pooling.
#include "graph/ops.h"

namespace tessera::graph::ops {
namespace {

/// One operation for each element of each window.
double windows(const Graph& g, const Node& n) {
  double window = 1;
  for (const int64_t k : n.integers("kernel_size")) window *= static_cast<double>(k);
  return window * static_cast<double>(g.value(n.outputs.front()).type.numel());
}

constexpr OpRecord records[] = {
    {"aten.max_pool1d", OpKind::pooling, {}, windows},
    {"aten.max_pool2d", OpKind::pooling, {}, windows},
    {"aten.max_pool3d", OpKind::pooling, {}, windows},
    {"aten.max_pool2d_with_indices", OpKind::pooling, {}, windows},
    {"aten.max_pool3d_with_indices", OpKind::pooling, {}, windows},
    {"aten.avg_pool1d", OpKind::pooling, {}, windows},
    {"aten.avg_pool2d", OpKind::pooling, {}, windows},
    {"aten.avg_pool3d", OpKind::pooling, {}, windows},
    {"aten.adaptive_avg_pool1d", OpKind::pooling},
    {"aten.adaptive_avg_pool2d", OpKind::pooling},
    {"aten.adaptive_avg_pool3d", OpKind::pooling},
    {"aten._adaptive_avg_pool2d", OpKind::pooling},
    {"aten._adaptive_avg_pool3d", OpKind::pooling},
    {"aten.adaptive_max_pool1d", OpKind::pooling},
    {"aten.adaptive_max_pool2d", OpKind::pooling},
    {"aten.adaptive_max_pool3d", OpKind::pooling},
};

}  // namespace

extern const OpFamily pooling{"pooling", records};

}  // namespace tessera::graph::ops
