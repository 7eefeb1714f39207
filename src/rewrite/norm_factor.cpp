// RMSNorm in front of products: its factor of a row moves behind them, its weight into theirs.
//
//   (x * r * w) W^T = r * (x (W w)^T),  r = rsqrt(mean(x^2) + eps) for each row
//
// The product reads x itself, so the normalized tensor is neither written nor read; a small kernel
// makes one factor a row, and the product's epilogue multiplies the accumulator by it in float. W w
// is computed once and rounded once, where the module rounds x * r * w instead: no rounding is
// added. LayerNorm stays as it is: its mean would be subtracted behind the product, which cancels
// digits wherever the mean is large beside the deviation.
//
// Rows whose product with the weight is infinite before it is normalized come out otherwise: their
// squares overflow, so that their factor is 0, and the module gives the bias where this gives NaN.
// docs/measuring.md says so. Below, only a weight of 1e16 and more could do the like.
//
// Not in fp16, where the product of what is not normalized may overflow wherever it is stored.
// Only on GPUs, whose products have epilogues of our own; and only where W is a copy already (its
// products were merged) or the norm has no weight, so that no parameter is held twice for it.
#include <algorithm>

#include "graph/ops.h"

#include "rewrite/rewrite.h"

namespace tessera::rewrite {
namespace {

/// The linears that read the norm, or nothing when something else does too, or a weight would have
/// to be copied.
std::vector<NodeId> readers(const Graph& g, const Node& norm) {
  const ValueId y = norm.outputs.front();
  if (g.is_output(y)) return {};
  std::vector<NodeId> out;
  for (const Use& use : g.uses(y)) {
    const Node& n = g.node(use.node);
    if (!is_op(n, "aten.linear") || n.tensor("input") != y || !is_weight(g, n.tensor("weight")) ||
        g.value(n.tensor("weight")).type.shape.size() != 2) {
      return {};
    }
    const Node* packed = producer(g, n.tensor("weight"));
    if (norm.tensor("weight").valid() && (packed == nullptr || !packed->prepack)) return {};
    out.push_back(use.node);
  }
  return out;
}

class Writer {
 public:
  Writer(Graph& g, NodeId before, const Node& like) : g_(g), before_(before), like_(like) {}

  ValueId call(std::string stem, std::string op,
               std::vector<std::pair<std::string, Argument>> arguments, const TensorType& type,
               bool prepack = false) {
    return insert(g_, {std::move(stem), std::move(op), std::move(arguments), type}, before_, like_,
                  prepack);
  }

  /// rsqrt(mean(x^2) + eps) in float, [..., 1].
  ValueId factor(ValueId x, double eps) {
    const ValueId wide = converted(g_, x, DType::float32, before_, like_);
    TensorType type = g_.value(wide).type;
    const ValueId squares =
        call("squares", "aten.pow.Tensor_Scalar", {{"self", wide}, {"exponent", int64_t{2}}}, type);
    type.shape.back() = 1;
    type.strides = contiguous_strides(type.shape);
    const ValueId mean =
        call("mean", "aten.mean.dim",
             {{"self", squares}, {"dim", ArgumentList{int64_t{-1}}}, {"keepdim", true}}, type);
    const ValueId shifted = call("shifted", "aten.add.Tensor",
                                 {{"self", mean}, {"other", eps}, {"alpha", int64_t{1}}}, type);
    return call("row_factor", "aten.rsqrt.default", {{"self", shifted}}, type);
  }

  /// factor * linear(x, weight * w) + bias, in the linear's type.
  ValueId linear(const Node& old, ValueId x, ValueId w, ValueId factor) {
    const TensorType type = g_.value(old.outputs.front()).type;
    ValueId weight = old.tensor("weight");
    if (w.valid()) {
      const TensorType weight_type = g_.value(weight).type;
      weight =
          call("weighted", "aten.mul.Tensor", {{"self", weight}, {"other", w}}, weight_type, true);
    }
    const ValueId product = call(old.name + "_of_raw", old.op,
                                 {{"input", x}, {"weight", weight}, {"bias", NoValue{}}}, type);
    g_.node(g_.value(product).producer).covers = old.covers;
    TensorType wide = type;
    wide.dtype = DType::float32;
    ValueId y = call("mul", "aten.mul.Tensor", {{"self", product}, {"other", factor}}, wide);
    y = converted(g_, y, type.dtype, before_, like_);
    if (!old.tensor("bias").valid()) return y;
    return call("add", "aten.add.Tensor",
                {{"self", y}, {"other", old.tensor("bias")}, {"alpha", int64_t{1}}}, type);
  }

 private:
  Graph& g_;
  NodeId before_;
  const Node& like_;
};

bool rewrite_one(Graph& g, RewriteLog& log, NodeId id) {
  const Node norm = g.node(id);
  const ValueId x = norm.tensor("input");
  const ValueId w = norm.tensor("weight");
  const auto* dims = norm.find("normalized_shape") != nullptr
                         ? std::get_if<ArgumentList>(norm.find("normalized_shape"))
                         : nullptr;
  if (norm.prepack || dims == nullptr || dims->size() != 1) return false;
  const TensorType type = g.value(norm.outputs.front()).type;
  const TensorType from = g.value(x).type;
  if (from.dtype != type.dtype || from.shape != type.shape || type.shape.size() < 2) return false;
  if (type.dtype != DType::float32 && type.dtype != DType::bfloat16) return false;
  if (w.valid() && (!is_weight(g, w) || g.value(w).type.dtype != type.dtype)) return false;
  const std::vector<NodeId> linears = readers(g, norm);
  if (linears.empty()) return false;
  const auto eps = norm.number("eps");
  if (!eps) return false;  // PyTorch's default depends on the type, and has changed
  const ValueId factor = Writer(g, id, norm).factor(x, *eps);
  g.node(g.value(factor).producer).covers = norm.covers;
  for (const NodeId linear : linears) {
    const Node old = g.node(linear);
    const ValueId y = Writer(g, linear, old).linear(old, x, w, factor);
    substitute(g, log, "RMSNorm's factor moved behind a product", linear, y, {id, linear});
  }
  return true;
}

}  // namespace

bool rewrite_norm_factor(Graph& g, RewriteLog& log) {
  if (!g.device.starts_with("cuda")) return false;
  bool changed = false;
  const std::vector<NodeId> order = g.order;
  for (const NodeId id : order) {
    const bool there = std::find(g.order.begin(), g.order.end(), id) != g.order.end();
    if (there && is_op(g.node(id), "aten.rms_norm")) changed |= rewrite_one(g, log, id);
  }
  return changed;
}

}  // namespace tessera::rewrite
