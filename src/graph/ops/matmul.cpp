// Matrix products.
#include <cmath>

#include "graph/ops.h"

namespace tessera::graph::ops {
namespace {

int64_t last(const Graph& g, ValueId v) {
  const auto& shape = g.value(v).type.shape;
  return shape.empty() ? 1 : shape.back();
}

/// 2 m n k, with k the last dim of the left operand: every result element is a sum of k products.
double product(const Graph& g, const Node& n) {
  for (const char* name : {"mat1", "batch1", "input", "self"}) {
    const ValueId left = n.tensor(name);
    if (!left.valid()) continue;
    return 2.0 * static_cast<double>(g.value(n.outputs.front()).type.numel()) *
           static_cast<double>(last(g, left));
  }
  return 0;
}

/// An einsum's contraction sums over what the operands have beyond the result: sqrt(|A| |B| / |C|)
/// for one contracted index set without broadcasting.
double contraction(const Graph& g, const Node& n) {
  double elements = 1;
  for (const ValueId v : tensor_arguments(n))
    elements *= static_cast<double>(g.value(v).type.numel());
  const auto result = static_cast<double>(g.value(n.outputs.front()).type.numel());
  const double k2 = elements / (result > 0 ? result : 1);
  return 2 * result * std::sqrt(k2);
}

constexpr OpRecord records[] = {
    {"aten.linear", OpKind::matmul, {}, product},
    {"aten.mm", OpKind::matmul, {}, product},
    {"aten.bmm", OpKind::matmul, {}, product},
    {"aten.matmul", OpKind::matmul, {}, product},
    {"aten.mv", OpKind::matmul, {}, product},
    {"aten.dot", OpKind::matmul, {}, product},
    {"aten.addmm", OpKind::matmul, {}, product},
    {"aten.addbmm", OpKind::matmul, {}, product},
    {"aten.baddbmm", OpKind::matmul, {}, product},
    {"aten.outer", OpKind::matmul, {}, product},
    {"aten.einsum", OpKind::matmul, {}, contraction},
    {"aten.bilinear", OpKind::matmul},
    {"aten._scaled_mm", OpKind::matmul, {}, product},
    {"aten._grouped_mm", OpKind::matmul, {}, product},
};

}  // namespace

extern const OpFamily matmul{"matmul", records};

}  // namespace tessera::graph::ops
