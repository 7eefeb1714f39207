#include "rewrite/equal_halves.h"

#include <algorithm>

#include "graph/operand.h"
#include "graph/ops.h"

#include "rewrite/rewrite.h"

namespace tessera::rewrite {
namespace {

bool has(const Graph& g, ValueId v) {
  return g.value(v).facts.contains(halves_equal);
}

/// Whole rows of a base that lies row by row.
bool seen_through_view(const Graph& g, ValueId v) {
  const Operand o = resolve(g, v);
  const TensorType& base = g.value(o.base).type;
  if (o.base == v || !has(g, o.base) || !base.contiguous()) return false;
  const int64_t width = base.shape.back();
  if (o.shape.empty() || o.shape.back() != width || o.strides.back() != 1) return false;
  if (o.offset % width != 0) return false;
  for (std::size_t d = 0; d + 1 < o.shape.size(); ++d)
    if (o.shape[d] != 1 && o.strides[d] % width != 0) return false;
  return true;
}

bool concatenated(const Graph& g, const Node& n) {
  const std::vector<ValueId> both = tensor_arguments(n);
  const auto rank = static_cast<int64_t>(g.value(n.outputs.front()).type.shape.size());
  const int64_t dim = n.integer("dim").value_or(0);
  return both.size() == 2 && both[0] == both[1] && (dim == rank - 1 || dim == -1);
}

/// Every operand is one number a row, or has equal halves of the result's.
bool computed(const Graph& g, const Node& n) {
  const int64_t width = g.value(n.outputs.front()).type.shape.back();
  bool any = false;
  for (const ValueId v : tensor_arguments(n)) {
    const std::vector<int64_t>& shape = g.value(v).type.shape;
    if (shape.empty() || shape.back() == 1) continue;
    if (!has(g, v) || shape.back() != width) return false;
    any = true;
  }
  return any;
}

bool follows(const Graph& g, const Node& n) {
  if (n.outputs.size() != 1) return false;
  const std::vector<int64_t>& shape = g.value(n.outputs.front()).type.shape;
  if (shape.empty() || shape.back() == 0 || shape.back() % 2 != 0) return false;
  if (is_op(n, "aten.cat")) return concatenated(g, n);
  const bool converts = is_op(n, "aten._to_copy") || is_op(n, "aten.to") || is_op(n, "aten.clone");
  if (converts || kind_of(n) == OpKind::pointwise) return computed(g, n);
  return kind_of(n) == OpKind::view && seen_through_view(g, n.outputs.front());
}

}  // namespace

void mark_equal_halves(Graph& g) {
  for (const NodeId id : g.order) {
    const Node& n = g.node(id);
    if (follows(g, n)) g.value(n.outputs.front()).facts[halves_equal] = true;
  }
}

}  // namespace tessera::rewrite
