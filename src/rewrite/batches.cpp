// Batched products whose operands have more than two strides for the batch.
//
// PyTorch copies such operands inside matmul. As a node of its own the copy can be written by
// whatever makes the operand, and the product is one strided batch. Up to two strides are read in
// place by the gemm rule.
#include <algorithm>

#include "graph/operand.h"

#include "rewrite/rewrite.h"

namespace tessera::rewrite {
namespace {

std::vector<int64_t> leading(const Graph& g, ValueId v) {
  const auto& shape = g.value(v).type.shape;
  return {shape.begin(), shape.end() - 2};
}

/// The operand with its batch dims broadcast to `lead` and merged to `batches`, when strides can
/// say it.
bool collapses(const Graph& g, ValueId v, const std::vector<int64_t>& lead,
               std::vector<int64_t> batches) {
  Operand o = resolve(g, v);
  const std::size_t extra = lead.size() + 2 - o.shape.size();
  o.shape.insert(o.shape.begin(), extra, 1);
  o.strides.insert(o.strides.begin(), extra, 0);
  for (std::size_t d = 0; d < lead.size(); ++d) {
    if (o.shape[d] != lead[d]) o.strides[d] = 0;
    o.shape[d] = lead[d];
  }
  batches.insert(batches.end(), o.shape.end() - 2, o.shape.end());
  return reshaped(o, batches).has_value();
}

/// Both operands read as one batch dim, or as the same two.
bool readable(const Graph& g, ValueId left, ValueId right, const std::vector<int64_t>& lead) {
  int64_t outer = 1;
  for (const int64_t d : lead) {
    const std::vector<int64_t> batches = {outer, layout::numel(lead) / outer};
    if (collapses(g, left, lead, batches) && collapses(g, right, lead, batches)) return true;
    outer *= d;
  }
  return false;
}

ValueId merged(Graph& g, ValueId v, const std::vector<int64_t>& lead, NodeId before,
               const Node& like) {
  const TensorType from = g.value(v).type;
  std::vector<int64_t> wide = lead;
  wide.insert(wide.end(), from.shape.end() - 2, from.shape.end());
  if (wide != from.shape) {
    ArgumentList size;
    TensorType to{from.dtype, wide, std::vector<int64_t>(wide.size(), 0)};
    const std::size_t extra = wide.size() - from.shape.size();
    for (const int64_t s : wide) size.emplace_back(s);
    for (std::size_t d = 0; d < from.shape.size(); ++d)
      to.strides[d + extra] = from.shape[d] == wide[d + extra] ? from.strides[d] : 0;
    v = insert(g,
               {"expand",
                "aten.expand.default",
                {{"self", v}, {"size", std::move(size)}, {"implicit", false}},
                to},
               before, like);
  }
  return regrouped(g, v, {layout::numel(lead), from.shape.end()[-2], from.shape.end()[-1]}, before,
                   like);
}

bool rewrite_one(Graph& g, RewriteLog& log, NodeId id) {
  const Node n = g.node(id);
  if (!is_op(n, "aten.matmul")) return false;
  const ValueId left = n.tensor("self");
  const ValueId right = n.tensor("other");
  const TensorType out = g.value(n.outputs.front()).type;
  if (out.numel() == 0 || g.value(left).type.shape.size() < 2 ||
      g.value(right).type.shape.size() < 2 || out.shape.size() < 4)
    return false;
  const std::vector<int64_t> lead(out.shape.begin(), out.shape.end() - 2);
  // One matrix for every batch: the batch dims are rows, and the left operand is copied if need be.
  if (layout::numel(leading(g, right)) == 1) return false;
  if (readable(g, left, right, lead)) return false;
  const ValueId a = merged(g, left, lead, id, n);
  const ValueId b = merged(g, right, lead, id, n);
  const std::vector<int64_t> shape = {layout::numel(lead), out.shape.end()[-2],
                                      out.shape.end()[-1]};
  const ValueId made = insert(g,
                              {"bmm",
                               "aten.bmm.default",
                               {{"self", a}, {"mat2", b}},
                               {out.dtype, shape, contiguous_strides(shape)}},
                              id, n);
  const ValueId result = regrouped(g, made, out.shape, id, n);
  g.node(g.value(made).producer).covers = n.covers;
  substitute(g, log, "batch dims of a product merged", id, result, {id});
  return true;
}

}  // namespace

bool rewrite_batches(Graph& g, RewriteLog& log) {
  bool changed = false;
  const std::vector<NodeId> order = g.order;
  for (const NodeId id : order) changed |= rewrite_one(g, log, id);
  return changed;
}

}  // namespace tessera::rewrite
