// Attention written out: softmax(scale * Q K^T + mask) V.
//
// Where all keys of a query are masked by -inf, softmax is NaN and PyTorch's call is 0. The call's
// result is NaN there, too, by a `where` behind it, unless the mask is known to leave a key to
// every query.
#include <cmath>

#include "graph/operand.h"
#include "graph/ops.h"

#include "rewrite/mask_argument.h"
#include "rewrite/rewrite.h"
#include "rewrite/written_attention.h"

namespace tessera::rewrite {
namespace {

ValueId transposed(Graph& g, ValueId v, NodeId before, const Node& like) {
  TensorType t = g.value(v).type;
  const std::size_t r = t.shape.size();
  std::swap(t.shape[r - 1], t.shape[r - 2]);
  std::swap(t.strides[r - 1], t.strides[r - 2]);
  return insert(g,
                {"transpose",
                 "aten.transpose.int",
                 {{"self", v}, {"dim0", int64_t{-2}}, {"dim1", int64_t{-1}}},
                 t},
                before, like);
}

ValueId unsqueezed(Graph& g, ValueId v, NodeId before, const Node& like) {
  TensorType t = g.value(v).type;
  t.strides.insert(t.strides.begin(), t.shape[0] * t.strides[0]);
  t.shape.insert(t.shape.begin(), 1);
  return insert(g, {"unsqueeze", "aten.unsqueeze.default", {{"self", v}, {"dim", int64_t{0}}}, t},
                before, like);
}

struct Attention {
  ValueId q, k, v;
  Argument mask = NoValue{};
  bool causal = false;
  bool leaves_none = false;  // a query may be left without keys
  double scale = 1;
};

/// NaN where the mask takes every key away.
ValueId without_keys(Graph& g, ValueId out, ValueId mask, NodeId before, const Node& like) {
  TensorType rows = g.value(mask).type;
  if (!rows.shape.empty()) rows.shape.back() = 1;
  rows.strides = contiguous_strides(rows.shape);
  const bool truth = rows.dtype == DType::boolean;
  ValueId any = insert(g,
                       {"any_key",
                        truth ? "aten.any.dim" : "aten.amax.default",
                        {{"self", mask},
                         {"dim", truth ? Argument(int64_t{-1}) : ArgumentList{int64_t{-1}}},
                         {"keepdim", true}},
                        rows},
                       before, like);
  if (!truth) {
    rows.dtype = DType::boolean;
    any = insert(g, {"any_key", "aten.ne.Scalar", {{"self", any}, {"other", -HUGE_VAL}}, rows},
                 before, like);
  }
  return insert(g,
                {"attention",
                 "aten.where.ScalarOther",
                 {{"condition", any}, {"self", out}, {"other", std::nan("")}},
                 g.value(out).type},
                before, like);
}

ValueId insert_attention(Graph& g, Attention a, const TensorType& type, NodeId before,
                         const Node& like) {
  const bool three = g.value(a.q).type.shape.size() == 3;
  TensorType made = type;
  if (three) {
    for (ValueId* v : {&a.q, &a.k, &a.v}) *v = unsqueezed(g, *v, before, like);
    made.shape.insert(made.shape.begin(), 1);
    made.strides.insert(made.strides.begin(), type.shape[0] * type.strides[0]);
  }
  const ValueId out = insert(g,
                             {"attention",
                              "aten.scaled_dot_product_attention.default",
                              {{"query", a.q},
                               {"key", a.k},
                               {"value", a.v},
                               {"attn_mask", a.mask},
                               {"dropout_p", 0.0},
                               {"is_causal", a.causal},
                               {"scale", a.scale},
                               {"enable_gqa", false}},
                              made},
                             before, like);
  if (!three) return out;
  return insert(g, {"squeeze", "aten.squeeze.dim", {{"self", out}, {"dim", int64_t{0}}}, type},
                before, like);
}

/// The mask terms as one attn_mask or is_causal; false when one call cannot say them.
bool settle_mask(Graph& g, const WrittenAttention& s, DType type, NodeId before, const Node& like,
                 Attention& a) {
  if (s.masks.empty()) return true;
  const MaskKind kind = classify(g, s.masks, s.queries, s.keys);
  a.causal = kind == MaskKind::causal;
  a.leaves_none = may_leave_no_key(g, s.masks, kind, s.queries, s.keys);
  if (kind == MaskKind::causal || kind == MaskKind::none) return true;
  const ValueId mask = mask_argument(g, s.masks, type, before, like);
  if (!mask.valid()) return false;
  a.mask = mask;
  return true;
}

bool rewrite_one(Graph& g, RewriteLog& log, NodeId last) {
  const auto written = read_attention(g, last);
  if (!written || written->cap != 0) return false;  // no op of ATen caps scores
  const Node pv = g.node(last);
  const TensorType type = g.value(pv.outputs.front()).type;
  Attention a{.q = written->q, .k = written->k, .v = written->v, .scale = written->scale};
  if (written->k_is_transposed) a.k = transposed(g, a.k, last, pv);
  if (!settle_mask(g, *written, type.dtype, last, pv, a)) return false;
  const ValueId called = insert_attention(g, a, type, last, pv);
  const auto* mask = std::get_if<ValueId>(&a.mask);
  const ValueId out =
      a.leaves_none && mask != nullptr ? without_keys(g, called, *mask, last, pv) : called;
  substitute(g, log, a.causal ? "causal attention written out" : "attention written out", last, out,
             written->nodes);
  // Whatever is behind it, the call itself stands for the same nodes.
  const Node& made = g.node(g.value(out).producer);
  NodeId call = g.value(called).producer;
  if (is_op(g.node(call), "aten.squeeze")) call = g.value(g.node(call).tensor("self")).producer;
  g.node(call).covers = made.covers;
  g.node(call).rewritten_from = made.rewritten_from;
  return true;
}

/// An attention call whose mask is causal, or masks nothing, says so instead.
bool name_mask(Graph& g, RewriteLog& log, NodeId id) {
  Node& n = g.node(id);
  const ValueId mask = n.tensor("attn_mask");
  if (!is_op(n, "aten.scaled_dot_product_attention") || !mask.valid() ||
      n.flag("is_causal").value_or(false))
    return false;
  tell_base(g, mask);
  MaskTerm term{.value = mask};
  term.replaces = g.value(mask).type.dtype == DType::boolean;
  term.where = false;
  const auto length = [&](std::string_view of) {
    const auto& shape = g.value(n.tensor(of)).type.shape;
    return shape[shape.size() - 2];
  };
  const MaskKind kind = classify(g, {term}, length("query"), length("key"));
  if (kind != MaskKind::causal && kind != MaskKind::none) return false;
  for (auto& [name, argument] : n.arguments) {
    if (name == "attn_mask") argument = NoValue{};
    if (name == "is_causal") argument = kind == MaskKind::causal;
  }
  log.push_back({.what = kind == MaskKind::causal ? "a mask that is causal" : "a mask of nothing",
                 .result = n.name,
                 .nodes = n.covers});
  return true;
}

}  // namespace

bool rewrite_attention(Graph& g, RewriteLog& log) {
  const std::vector<NodeId> order = g.order;
  for (const NodeId id : order) {
    if (rewrite_one(g, log, id) || name_mask(g, log, id)) return true;
  }
  g.erase_dead();
  return false;
}

}  // namespace tessera::rewrite
