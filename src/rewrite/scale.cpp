// Numbers that scale an operand of a product scale its result, where the kernel's epilogue
// multiplies the accumulator in float.
//
// What is folded where. A number times a weight is computed once (rewrite_constants): one rounding
// of the weight, which the module makes too. A number times an activation moves behind the product:
// the rounding of the scaled activation disappears. It is not multiplied into the weight, which
// would round the weight instead. Factors for each row, column or channel behind a product (batch
// norm with fixed statistics, per-column scales) stay there, for the epilogue: folded into a
// 16-bit weight they would cost it a rounding. Factors along K stay in front: only the weight could
// take them.
#include <algorithm>
#include <cmath>

#include "graph/ops.h"

#include "rewrite/rewrite.h"

namespace tessera::rewrite {
namespace {

struct Scaled {
  ValueId inner;
  double factor = 1;
  bool divides = false;
};

/// x * number or x / number, used by nobody else.
std::optional<Scaled> scaled(const Graph& g, ValueId v, NodeId user) {
  const Node* n = producer(g, v);
  if (n == nullptr || n->prepack || !used_only_by(g, v, {user})) return std::nullopt;
  Scaled s;
  s.divides = is_op(*n, "aten.div") && n->text("rounding_mode").empty();
  if (!s.divides && !is_op(*n, "aten.mul")) return std::nullopt;
  auto factor = scalar_argument(g, *n, "other");
  s.inner = n->tensor("self");
  if (!factor && !s.divides) {
    factor = scalar_argument(g, *n, "self");
    s.inner = n->tensor("other");
  }
  // Exponents stay far from both ends of the range, so that nothing over- or underflows elsewhere
  // than before.
  constexpr double most = 0x1p32;
  if (!factor || !s.inner.valid() || !(std::fabs(*factor) <= most) ||
      !(std::fabs(*factor) >= 1 / most))
    return std::nullopt;
  s.factor = *factor;
  const TensorType& from = g.value(s.inner).type;
  const TensorType& to = g.value(v).type;
  const bool wide = from.dtype == DType::float32 || from.dtype == DType::bfloat16;
  return wide && from.dtype == to.dtype && from.shape == to.shape ? std::optional(s) : std::nullopt;
}

ValueId times(Graph& g, ValueId v, const Scaled& s, NodeId before, const Node& like) {
  const std::string op = s.divides ? "div" : "mul";
  return insert(g,
                {op, "aten." + op + ".Tensor", {{"self", v}, {"other", s.factor}}, g.value(v).type},
                before, like);
}

bool rewrite_one(Graph& g, RewriteLog& log, NodeId id) {
  const Node n = g.node(id);
  if (n.prepack) return false;
  const bool linear = is_op(n, "aten.linear");
  if (!linear && !is_op(n, "aten.mm") && !is_op(n, "aten.bmm") && !is_op(n, "aten.matmul"))
    return false;
  for (const std::string_view side : {"input", "self", "mat2", "other"}) {
    const ValueId v = n.tensor(side);
    const auto s = v.valid() ? scaled(g, v, id) : std::nullopt;
    if (!s) continue;
    Node plain = n;
    ValueId bias;
    for (auto& [name, argument] : plain.arguments) {
      if (name == side) argument = s->inner;
      if (linear && name == "bias") {
        bias = n.tensor("bias");
        argument = NoValue{};
      }
    }
    const TensorType type = g.value(n.outputs.front()).type;
    const ValueId made =
        insert(g, {n.name + "_unscaled", n.op, plain.arguments, type}, id, n, false);
    g.node(g.value(made).producer).covers = n.covers;
    ValueId result = times(g, made, *s, id, n);
    if (bias.valid()) {
      result = insert(g,
                      {"add",
                       "aten.add.Tensor",
                       {{"self", result}, {"other", bias}, {"alpha", int64_t{1}}},
                       type},
                      id, n);
    }
    substitute(g, log, "a number moved behind a product", id, result, {g.value(v).producer, id});
    return true;
  }
  return false;
}

}  // namespace

bool rewrite_scale(Graph& g, RewriteLog& log) {
  bool changed = false;
  const std::vector<NodeId> order = g.order;
  for (const NodeId id : order) {
    if (std::find(g.order.begin(), g.order.end(), id) != g.order.end())
      changed |= rewrite_one(g, log, id);
  }
  return changed;
}

}  // namespace tessera::rewrite
