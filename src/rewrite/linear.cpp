// aten.linear from products with weights.
#include <algorithm>

#include "graph/operand.h"

#include "rewrite/rewrite.h"

namespace tessera::rewrite {
namespace {

/// The [n, k] weight behind a [k, n] right operand: what it is the transpose of, or a new
/// transposed view.
ValueId transposed_weight(Graph& g, ValueId right, NodeId before, const Node& like) {
  const Node* p = producer(g, right);
  if (p != nullptr &&
      (is_op(*p, "aten.t") || is_op(*p, "aten.transpose") || is_op(*p, "aten.permute"))) {
    const ValueId source = p->tensor("self");
    const auto& from = g.value(source).type.shape;
    const auto& to = g.value(right).type.shape;
    if (from.size() == 2 && from[0] == to[1] && from[1] == to[0] &&
        (!is_op(*p, "aten.permute") || p->integers("dims")[0] != 0)) {
      return source;
    }
  }
  const TensorType& t = g.value(right).type;
  return insert(g,
                {"t",
                 "aten.t.default",
                 {{"self", right}},
                 {t.dtype, {t.shape[1], t.shape[0]}, {t.strides[1], t.strides[0]}}},
                before, like);
}

ValueId make_linear(Graph& g, ValueId input, ValueId weight, Argument bias, const TensorType& type,
                    NodeId before, const Node& like) {
  return insert(g,
                {"linear",
                 "aten.linear.default",
                 {{"input", input}, {"weight", weight}, {"bias", std::move(bias)}},
                 type},
                before, like);
}

bool product_with_weight(Graph& g, RewriteLog& log, NodeId id) {
  const Node n = g.node(id);
  const bool addmm = is_op(n, "aten.addmm");
  if (!addmm && !is_op(n, "aten.mm") && !is_op(n, "aten.matmul")) return false;
  const ValueId left = n.tensor(addmm ? "mat1" : "self");
  const ValueId right = n.tensor(addmm || is_op(n, "aten.mm") ? "mat2" : "other");
  if (g.value(right).type.shape.size() != 2 || g.value(left).type.shape.size() < 2 ||
      !is_weight(g, right))
    return false;
  Argument bias = NoValue{};
  if (addmm) {
    const ValueId b = n.tensor("self");
    const auto& shape = g.value(b).type.shape;
    if (n.number("beta") != 1 || n.number("alpha") != 1 || shape.size() != 1 ||
        shape[0] != g.value(right).type.shape[1])
      return false;
    bias = b;
  }
  const ValueId weight = transposed_weight(g, right, id, n);
  const ValueId out = make_linear(g, left, weight, bias, g.value(n.outputs.front()).type, id, n);
  substitute(g, log, addmm ? "addmm with a weight" : "a product with a weight", id, out, {id});
  return true;
}

/// linear(x, w) + b with b of one dim.
bool bias_added(Graph& g, RewriteLog& log, NodeId id) {
  const Node n = g.node(id);
  if (!is_op(n, "aten.add") || n.number("alpha").value_or(1) != 1) return false;
  for (const auto& [linear_name, bias_name] :
       {std::pair{"self", "other"}, std::pair{"other", "self"}}) {
    const ValueId y = n.tensor(linear_name);
    const ValueId b = n.tensor(bias_name);
    const Node* p = producer(g, y);
    if (p == nullptr || !b.valid() || !is_op(*p, "aten.linear") || p->tensor("bias").valid())
      continue;
    const auto& shape = g.value(b).type.shape;
    if (shape.size() != 1 || shape[0] != g.value(y).type.shape.back() || !is_weight(g, b)) continue;
    if (g.value(b).type.dtype != g.value(y).type.dtype || !used_only_by(g, y, {id})) continue;
    const NodeId product = g.value(y).producer;
    const Node linear = *p;
    const ValueId out = make_linear(g, linear.tensor("input"), linear.tensor("weight"), b,
                                    g.value(n.outputs.front()).type, id, linear);
    substitute(g, log, "a bias added to a linear", id, out, {product, id});
    return true;
  }
  return false;
}

}  // namespace

bool rewrite_linear(Graph& g, RewriteLog& log) {
  bool changed = false;
  const std::vector<NodeId> order = g.order;
  for (const NodeId id : order) {
    if (std::find(g.order.begin(), g.order.end(), id) == g.order.end()) continue;
    changed |= product_with_weight(g, log, id) || bias_added(g, log, id);
  }
  return changed;
}

}  // namespace tessera::rewrite
