// A linear maps every row by itself, so the order of its rows is free: where a module transposes
// batch and sequence around it (nn.MultiheadAttention does), the transposition moves past it, to
// where views and attention take it in.
#include <algorithm>
#include <numeric>

#include "graph/operand.h"
#include "graph/ops.h"

#include "rewrite/rewrite.h"

namespace tessera::rewrite {
namespace {

using Dims = std::vector<int64_t>;

/// The order of dims of a transposition that leaves the last dim in its place; empty for any other
/// node.
Dims order_of_rows(const Graph& g, const Node& n) {
  const bool transposes = is_op(n, "aten.transpose");
  if (!transposes && !is_op(n, "aten.permute")) return {};
  const std::size_t rank = g.value(n.outputs.front()).type.shape.size();
  if (rank < 3) return {};
  Dims dims(rank);
  std::iota(dims.begin(), dims.end(), 0);
  if (transposes) {
    std::swap(dims[wrap_dim(n.integer("dim0").value_or(0), rank)],
              dims[wrap_dim(n.integer("dim1").value_or(0), rank)]);
  } else {
    const Dims given = n.integers("dims");
    for (std::size_t i = 0; i < rank; ++i) dims[i] = static_cast<int64_t>(wrap_dim(given[i], rank));
  }
  const bool moves = !std::is_sorted(dims.begin(), dims.end());
  return moves && dims.back() == static_cast<int64_t>(rank) - 1 ? dims : Dims{};
}

bool is_dense_copy(const Node& n) {
  return is_op(n, "aten.contiguous") ||
         (is_op(n, "aten.clone") && n.text("memory_format").ends_with("contiguous_format"));
}

/// Whether all that reads the value, through views, are copies that lay it out anew, and attention:
/// nobody's result has another layout then.
bool layout_is_free(const Graph& g, ValueId v) {
  if (g.is_output(v)) return false;
  const std::vector<Use> uses = g.uses(v);
  return std::all_of(uses.begin(), uses.end(), [&](const Use& use) {
    const Node& n = g.node(use.node);
    if (is_dense_copy(n) || kind_of(n) == OpKind::attention) return true;
    return kind_of(n) == OpKind::view &&
           std::all_of(n.outputs.begin(), n.outputs.end(),
                       [&](ValueId out) { return layout_is_free(g, out); });
  });
}

/// The linear `like` of other rows; its result is contiguous.
ValueId linear_of(Graph& g, ValueId input, const Node& like, NodeId before) {
  TensorType type = g.value(like.outputs.front()).type;
  const int64_t columns = type.shape.back();
  type.shape = g.value(input).type.shape;
  type.shape.back() = columns;
  type.strides = contiguous_strides(type.shape);
  const Argument* bias = like.find("bias");
  return insert(g,
                {"linear",
                 "aten.linear.default",
                 {{"input", input},
                  {"weight", like.tensor("weight")},
                  {"bias", bias != nullptr ? *bias : Argument(NoValue{})}},
                 type},
                before, like);
}

/// linear(permute(x)) -> permute(linear(x)).
bool move_behind(Graph& g, RewriteLog& log, NodeId id) {
  const Node linear = g.node(id);
  const Node* p = producer(g, linear.tensor("input"));
  if (p == nullptr) return false;
  const Dims dims = order_of_rows(g, *p);
  const ValueId source = p->tensor("self");
  if (dims.empty() || !g.value(source).type.contiguous() ||
      !layout_is_free(g, linear.outputs.front()))
    return false;
  const ValueId made = linear_of(g, source, linear, id);
  g.node(g.value(made).producer).covers = linear.covers;
  substitute(g, log, "a linear before its rows are transposed", id,
             permuted(g, made, dims, id, linear), {id});
  return true;
}

/// Whether every reader of the value lays its own result out row by row, whatever it reads.
bool read_row_by_row(const Graph& g, ValueId v) {
  const std::vector<Use> uses = g.uses(v);
  return !g.is_output(v) && std::all_of(uses.begin(), uses.end(), [&](const Use& use) {
    const Node& n = g.node(use.node);
    return (kind_of(n) == OpKind::pointwise || kind_of(n) == OpKind::normalize) &&
           g.value(n.outputs.front()).type.contiguous();
  });
}

/// permute(view(linear(x))) of rows of attention's result -> linear(copy(permute(view(x)))), whose
/// copy attention takes in.
bool move_before(Graph& g, RewriteLog& log, NodeId id) {
  const Node outer = g.node(id);
  const Dims dims = order_of_rows(g, outer);
  if (dims.empty() || !read_row_by_row(g, outer.outputs.front())) return false;
  const ValueId grouped = outer.tensor("self");
  const std::vector<int64_t> shape = g.value(grouped).type.shape;
  if (!used_only_by(g, grouped, {id})) return false;
  NodeId at = g.value(grouped).producer;
  std::vector<NodeId> inner = {id};
  if (at.valid() && kind_of(g.node(at)) == OpKind::view) {
    inner.push_back(at);
    const ValueId below = g.node(at).tensor("self");
    if (!below.valid() || !used_only_by(g, below, {at})) return false;
    at = g.value(below).producer;
  }
  if (!at.valid() || !is_op(g.node(at), "aten.linear")) return false;
  const Node linear = g.node(at);
  if (g.value(linear.outputs.front()).type.shape.back() != shape.back()) return false;
  const ValueId input = linear.tensor("input");
  const Node* attention = producer(g, resolve(g, input).base);
  if (attention == nullptr || kind_of(*attention) != OpKind::attention) return false;
  inner.push_back(at);
  std::vector<int64_t> rows = shape;
  rows.back() = g.value(input).type.shape.back();
  const ValueId turned = permuted(g, regrouped(g, input, rows, id, linear), dims, id, linear);
  const ValueId copied = row_major_copy(g, turned, id, linear);
  substitute(g, log, "rows of a linear transposed before it", id, linear_of(g, copied, linear, id),
             inner);
  return true;
}

}  // namespace

bool rewrite_row_order(Graph& g, RewriteLog& log) {
  bool changed = false;
  const std::vector<NodeId> order = g.order;
  for (const NodeId id : order) {
    if (std::find(g.order.begin(), g.order.end(), id) == g.order.end()) continue;
    changed |= is_op(g.node(id), "aten.linear") ? move_behind(g, log, id) : move_before(g, log, id);
  }
  return changed;
}

}  // namespace tessera::rewrite
