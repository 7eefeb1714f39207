// Activations, softmax and normalizations in any spelling: regions between one value x and one node
// that compute a function which PyTorch has an op for (row_function.h).
//
// Rows may lie along any one dim. Softmax has a dim; norms over an inner one are written as a norm
// of the permuted tensor, permuted back and laid out as before.
#include "rewrite/rewrite.h"
#include "rewrite/row_function.h"
#include "rewrite/row_region.h"

namespace tessera::rewrite {
namespace {

/// The weight [C] plus one, computed once.
ValueId one_plus(Graph& g, ValueId w, const Node& like) {
  return insert(g,
                {"one_plus",
                 "aten.add.Tensor",
                 {{"self", w}, {"other", int64_t{1}}, {"alpha", int64_t{1}}},
                 g.value(w).type},
                g.order.front(), like, true);
}

/// A norm over an inner dim: of x with that dim moved to the end, moved back, in the layout of
/// before.
ValueId insert_permuted(Graph& g, const RowRegion& r, RowFunction& found, const Node& like) {
  const TensorType type = found.node.type;
  const std::size_t rank = type.shape.size();
  std::vector<int64_t> there;
  for (std::size_t d = 0; d < rank; ++d)
    if (d != r.dim) there.push_back(static_cast<int64_t>(d));
  there.push_back(static_cast<int64_t>(r.dim));
  std::vector<int64_t> back(rank);
  for (std::size_t i = 0; i < rank; ++i)
    back[static_cast<std::size_t>(there[i])] = static_cast<int64_t>(i);
  const ValueId x = permuted(g, r.x, there, r.last, like);
  for (auto& [name, argument] : found.node.arguments)
    if (name == "input") argument = x;
  found.node.type.shape = g.value(x).type.shape;
  found.node.type.strides = contiguous_strides(found.node.type.shape);
  const ValueId norm = insert(g, found.node, r.last, like);
  const ValueId moved = permuted(g, norm, back, r.last, like);
  // Through one dim, so that the elements really move: whatever follows reads the layout of before,
  // and the kernel writes it.
  return regrouped(g, regrouped(g, moved, {type.numel()}, r.last, like), type.shape, r.last, like);
}

void apply(Graph& g, RewriteLog& log, const RowRegion& r, RowFunction found) {
  const Node like = g.node(r.last);
  const TensorType type = g.value(like.outputs.front()).type;
  found.node.type = type;
  const bool norm =
      found.node.op == "aten.rms_norm.default" || found.node.op == "aten.layer_norm.default";
  for (auto& [name, argument] : found.node.arguments) {
    const auto* v = norm ? std::get_if<ValueId>(&argument) : nullptr;
    if (v == nullptr || (name != "weight" && name != "bias")) continue;
    ValueId flat = regrouped(g, *v, {type.shape[r.dim]}, r.last, like);
    // A row in float is multiplied by a weight of 16 bits as it is; the op takes one type.
    if (size_of(g.value(flat).type.dtype) < size_of(type.dtype))
      flat = converted(g, flat, type.dtype, r.last, like);
    argument = found.one_plus_weight && name == "weight" ? one_plus(g, flat, like) : flat;
  }
  const bool inner = norm && r.dim + 1 != type.shape.size();
  const ValueId out =
      inner ? insert_permuted(g, r, found, like) : insert(g, std::move(found.node), r.last, like);
  substitute(g, log, std::move(found.what), r.last, out, r.nodes);
}

bool rewrite_above(Graph& g, RewriteLog& log, NodeId last) {
  const Node& n = g.node(last);
  if (n.outputs.size() != 1 || !may_be_inside(g, n) ||
      !is_floating(g.value(n.outputs.front()).type.dtype))
    return false;
  for (const ValueId x : region_starts(g, last)) {
    const std::size_t rank = g.value(x).type.shape.size();
    for (const std::size_t dim : region_dims(g, last)) {
      if (rank != 0 && dim >= rank) continue;  // of a view with more dims
      RowRegion r{.x = x, .last = last, .nodes = {}, .weights = {}, .dim = dim};
      if (!fill_region(g, r) || (r.reduces && rank == 0)) continue;
      auto found = r.reduces ? row_function_of(g, r) : activation_of(g, r);
      if (!found) continue;
      apply(g, log, r, std::move(*found));
      return true;
    }
  }
  return false;
}

}  // namespace

bool rewrite_by_value(Graph& g, RewriteLog& log) {
  bool changed = false;
  for (std::size_t i = g.order.size(); i-- > 0;) {
    if (i >= g.order.size()) continue;
    changed |= rewrite_above(g, log, g.order[i]);
  }
  return changed;
}

}  // namespace tessera::rewrite
