// Batch norm with fixed statistics as a scale and a shift for each channel:
//   scale = weight / sqrt(var + eps), shift = bias - mean * scale, y = x * scale + shift.
//
// Scale and shift are computed once. They stay pointwise work, for the epilogue of whatever makes
// x, and are not multiplied into the weight before x, which would round it once more. Against
// (x - mean) * rstd the shift cancels digits only where |mean| is large beside the deviation, and
// there x itself has lost them. On a host PyTorch computes the same two numbers; elsewhere
// (x - mean) * rstd * weight overflows where x * scale does, but for an x as large as the mean.
#include "graph/ops.h"

#include "rewrite/rewrite.h"

namespace tessera::rewrite {
namespace {

bool fixed_statistics(const Node& n) {
  if (is_op(n, "aten._native_batch_norm_legit_no_training")) return true;
  return (is_op(n, "aten.batch_norm") || is_op(n, "aten.native_batch_norm")) &&
         !n.flag("training").value_or(true);
}

/// Small channel-wise arithmetic, computed once.
class Once {
 public:
  Once(Graph& g, NodeId before, const Node& like) : g_(g), before_(before), like_(like) {}

  ValueId call(const std::string& op, std::vector<std::pair<std::string, Argument>> arguments,
               const TensorType& type) {
    return insert(g_, {op.substr(5, op.find('.', 5) - 5), op, std::move(arguments), type}, before_,
                  like_, true);
  }
  ValueId binary(const std::string& op, ValueId a, Argument b) {
    std::vector<std::pair<std::string, Argument>> arguments = {{"self", a},
                                                               {"other", std::move(b)}};
    if (op != "mul") arguments.emplace_back("alpha", int64_t{1});
    return call("aten." + op + ".Tensor", std::move(arguments), g_.value(a).type);
  }
  /// [C] as [C, 1, ...], to be broadcast along dim 1 of a tensor of `rank` dims.
  ValueId column(ValueId v, std::size_t rank) {
    std::vector<int64_t> shape(rank - 1, 1);
    shape[0] = g_.value(v).type.shape[0];
    return regrouped(g_, v, shape, before_, like_);
  }

 private:
  Graph& g_;
  NodeId before_;
  const Node& like_;
};

bool rewrite_one(Graph& g, RewriteLog& log, NodeId id) {
  const Node n = g.node(id);
  if (!fixed_statistics(n)) return false;
  for (std::size_t i = 1; i < n.outputs.size(); ++i) {
    if (g.is_output(n.outputs[i]) || !g.uses(n.outputs[i]).empty()) return false;
  }
  const ValueId x = n.tensor("input");
  const ValueId mean = n.tensor("running_mean");
  const ValueId var = n.tensor("running_var");
  const TensorType type = g.value(n.outputs.front()).type;
  if (!x.valid() || !mean.valid() || !var.valid() || g.value(x).type.shape.size() < 2) return false;
  for (const ValueId v : {mean, var, n.tensor("weight"), n.tensor("bias")}) {
    if (v.valid() && (!is_weight(g, v) || g.value(v).type.dtype != g.value(x).type.dtype))
      return false;
  }
  Once once(g, id, n);
  const TensorType channels = g.value(var).type;
  ValueId scale =
      once.call("aten.rsqrt.default",
                {{"self", once.binary("add", var, n.number("eps").value_or(1e-5))}}, channels);
  if (n.tensor("weight").valid()) scale = once.binary("mul", scale, n.tensor("weight"));
  const ValueId moved = once.binary("mul", mean, scale);
  const ValueId shift =
      n.tensor("bias").valid()
          ? once.binary("sub", n.tensor("bias"), moved)
          : once.call("aten.rsub.Scalar",  // 0 - 0, not -0
                      {{"self", moved}, {"other", int64_t{0}}, {"alpha", int64_t{1}}}, channels);
  const std::size_t rank = type.shape.size();
  const ValueId product = insert(
      g, {"mul", "aten.mul.Tensor", {{"self", x}, {"other", once.column(scale, rank)}}, type}, id,
      n);
  g.node(g.value(product).producer).covers = n.covers;
  const ValueId out =
      insert(g,
             {"add",
              "aten.add.Tensor",
              {{"self", product}, {"other", once.column(shift, rank)}, {"alpha", int64_t{1}}},
              type},
             id, n);
  substitute(g, log, "batch norm with fixed statistics", id, out, {id});
  return true;
}

}  // namespace

bool rewrite_batch_norm(Graph& g, RewriteLog& log) {
  bool changed = false;
  const std::vector<NodeId> order = g.order;
  for (const NodeId id : order) changed |= rewrite_one(g, log, id);
  return changed;
}

}  // namespace tessera::rewrite
