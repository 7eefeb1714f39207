// Attention written out: softmax(scale * Q K^T + mask) V.
#include <cmath>
#include <set>

#include "graph/operand.h"
#include "graph/ops.h"

#include "rewrite/rewrite.h"
#include "rewrite/score_mask.h"

namespace tessera::rewrite {
namespace {

struct Scores {
  ValueId q;
  ValueId kt;
  double scale = 1;
  std::vector<MaskTerm> masks;
  std::vector<NodeId> nodes;
};

bool is_product(const Node& n) {
  return is_op(n, "aten.matmul") || is_op(n, "aten.bmm");
}
ValueId left_of(const Node& n) {
  return n.tensor("self");
}
ValueId right_of(const Node& n) {
  return n.tensor(is_op(n, "aten.bmm") ? "mat2" : "other");
}

bool peel(const Graph& g, ValueId v, Scores& s);

/// mul and div by a number. A factor outside an additive mask would scale the mask too.
bool peel_scale(const Graph& g, const Node& n, NodeId id, Scores& s) {
  const bool divides = is_op(n, "aten.div");
  if (!divides && !is_op(n, "aten.mul")) return false;
  std::optional<double> factor = scalar_argument(g, n, "other");
  ValueId inner = n.tensor("self");
  if (!factor && !divides) {
    factor = scalar_argument(g, n, "self");
    inner = n.tensor("other");
  }
  if (!factor || *factor <= 0 || !std::isfinite(*factor) || !inner.valid()) return false;
  Scores below = s;
  below.nodes.push_back(id);
  below.scale *= divides ? 1 / *factor : *factor;
  const std::size_t masks_above = below.masks.size();
  if (!peel(g, inner, below)) return false;
  for (std::size_t i = masks_above; i < below.masks.size(); ++i) {
    if (!below.masks[i].replaces || std::isfinite(below.masks[i].masked)) return false;
  }
  s = std::move(below);
  return true;
}

bool peel_mask(const Graph& g, const Node& n, NodeId id, Scores& s) {
  std::vector<std::pair<ValueId, MaskTerm>> ways;  // scores, term
  if (is_op(n, "aten.masked_fill")) {
    const auto value = scalar_argument(g, n, "value");
    if (value) ways.push_back({n.tensor("self"), {n.tensor("mask"), true, true, *value}});
  } else if (is_op(n, "aten.where")) {
    if (const auto value = scalar_argument(g, n, "other"))
      ways.push_back({n.tensor("self"), {n.tensor("condition"), true, false, *value}});
    if (const auto value = scalar_argument(g, n, "self"))
      ways.push_back({n.tensor("other"), {n.tensor("condition"), true, true, *value}});
  } else if (is_op(n, "aten.add") && n.number("alpha").value_or(1) == 1 &&
             n.tensor("other").valid()) {
    ways.push_back({n.tensor("self"), {n.tensor("other")}});
    ways.push_back({n.tensor("other"), {n.tensor("self")}});
  }
  for (const auto& [scores, term] : ways) {
    if (!scores.valid() || (term.replaces && term.masked > low_enough)) continue;
    if (g.value(scores).type.shape != g.value(n.outputs.front()).type.shape) continue;
    Scores below = s;
    below.nodes.push_back(id);
    below.masks.push_back(term);
    if (peel(g, scores, below)) {
      s = std::move(below);
      return true;
    }
  }
  return false;
}

/// From the softmax's input down to the product of queries and keys.
bool peel(const Graph& g, ValueId v, Scores& s) {
  v = through_copies(g, v, &s.nodes);
  const Node* n = producer(g, v);
  if (n == nullptr || s.nodes.size() > 24) return false;
  const NodeId id = g.value(v).producer;
  if (is_product(*n)) {
    s.q = left_of(*n);
    s.kt = right_of(*n);
    s.nodes.push_back(id);
    return true;
  }
  return peel_scale(g, *n, id, s) || peel_mask(g, *n, id, s);
}

/// A factor applied to queries or keys before their product; conversions to float are dropped with
/// it.
ValueId unscaled(const Graph& g, ValueId v, DType wanted, Scores& s) {
  for (;;) {
    std::vector<NodeId> passed;
    const ValueId below = through_copies(g, v, &passed);
    const Node* n = producer(g, below);
    if (n != nullptr && (is_op(*n, "aten.mul") || is_op(*n, "aten.div"))) {
      const auto factor = scalar_argument(g, *n, "other");
      const bool mine =
          factor && *factor > 0 && std::isfinite(*factor) && n->tensor("self").valid();
      if (mine) {
        s.scale *= is_op(*n, "aten.div") ? 1 / *factor : *factor;
        v = n->tensor("self");
        continue;
      }
    }
    return g.value(v).type.dtype == wanted       ? v
           : g.value(below).type.dtype == wanted ? below
                                                 : ValueId{};
  }
}

/// The keys as [..., length, width]: what `kt` is the transpose of, or nothing when it is no
/// transpose.
ValueId untransposed(const Graph& g, ValueId kt, Scores& s) {
  kt = through_copies(g, kt);
  while (const Node* n = producer(g, kt)) {
    const std::size_t rank = g.value(kt).type.shape.size();
    if (is_op(*n, "aten.transpose")) {
      const auto dims = std::set<std::size_t>{wrap_dim(*n->integer("dim0"), rank),
                                              wrap_dim(*n->integer("dim1"), rank)};
      return dims == std::set<std::size_t>{rank - 2, rank - 1} ? n->tensor("self") : ValueId{};
    }
    const auto factor = scalar_argument(g, *n, "other");
    if (!is_op(*n, "aten.mul") || !factor || *factor <= 0) return {};
    s.scale *= *factor;
    kt = through_copies(g, n->tensor("self"));
  }
  return {};
}

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

/// What facts of truth values say of their negation.
Json negated(const Json& facts) {
  const auto kept = [&](const char* kind) {
    Json out = {{kind, true}};
    for (const char* bound : {"lower", "upper"})
      if (facts.contains(bound)) out[bound] = facts.at(bound);
    return out;
  };
  const auto diagonal = [&](const char* kind, int64_t further) {
    return Json{{kind, true}, {"diagonal", facts.at("diagonal").get<int64_t>() + further}};
  };
  if (facts.contains("lower_triangular")) return diagonal("upper_triangular", 1);
  if (facts.contains("upper_triangular")) return diagonal("lower_triangular", -1);
  if (facts.contains("band")) return kept("outside_band");
  if (facts.contains("outside_band")) return kept("band");
  return Json::object();
}

/// attn_mask for one term that is not causal: additive as it is, a condition as "true where
/// attended".
ValueId mask_argument(Graph& g, const MaskTerm& term, DType type, NodeId before, const Node& like) {
  const TensorType t = g.value(term.value).type;
  if (!term.replaces) return converted(g, term.value, type, before, like, "mask");
  if (t.dtype != DType::boolean) return {};
  if (!term.where) return term.value;
  const ValueId attended = insert(g,
                                  {"attended",
                                   "aten.logical_not.default",
                                   {{"self", term.value}},
                                   {DType::boolean, t.shape, contiguous_strides(t.shape)}},
                                  before, like);
  g.value(attended).facts = negated(g.value(term.value).facts);
  return attended;
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
  double scale = 1;
};

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
bool settle_mask(Graph& g, const Scores& s, DType type, NodeId before, const Node& like,
                 int64_t rows, int64_t columns, Attention& a) {
  if (s.masks.empty()) return true;
  const MaskKind kind = classify(g, s.masks, rows, columns);
  a.causal = kind == MaskKind::causal;
  if (kind == MaskKind::causal || kind == MaskKind::none) return true;
  if (s.masks.size() != 1) return false;
  // A row that a finite value masks as a whole attends to everything; only -inf means "not
  // attended" there too.
  if (s.masks[0].replaces && std::isfinite(s.masks[0].masked)) return false;
  const ValueId mask = mask_argument(g, s.masks[0], type, before, like);
  if (!mask.valid()) return false;
  a.mask = mask;
  return true;
}

bool inner_is_private(const Graph& g, const std::vector<NodeId>& inner, NodeId last) {
  for (const NodeId id : inner) {
    if (id == last) continue;
    for (const ValueId v : g.node(id).outputs) {
      if (!used_only_by(g, v, inner)) return false;
    }
  }
  return true;
}

bool rewrite_one(Graph& g, RewriteLog& log, NodeId last) {
  const Node pv = g.node(last);
  if (!is_product(pv)) return false;
  const TensorType type = g.value(pv.outputs.front()).type;
  const std::size_t rank = type.shape.size();
  if (rank != 3 && rank != 4) return false;
  Scores s;
  s.nodes.push_back(last);
  const ValueId weights = through_copies(g, left_of(pv), &s.nodes);
  const Node* softmax = producer(g, weights);
  if (softmax == nullptr || (!is_op(*softmax, "aten.softmax") && !is_op(*softmax, "aten._softmax")))
    return false;
  if (wrap_dim(softmax->integer("dim").value_or(0), rank) != rank - 1) return false;
  s.nodes.push_back(g.value(weights).producer);
  if (!peel(g, softmax->tensor("self"), s) || !inner_is_private(g, s.nodes, last)) return false;
  Attention a;
  a.v = right_of(pv);
  if (g.value(a.v).type.dtype != type.dtype) return false;
  a.q = unscaled(g, s.q, type.dtype, s);
  const ValueId k = untransposed(g, s.kt, s);
  if (!a.q.valid()) return false;
  if (k.valid()) {
    a.k = unscaled(g, k, type.dtype, s);
  } else {
    const ValueId kt = through_copies(g, s.kt);
    if (g.value(kt).type.dtype == type.dtype) a.k = transposed(g, kt, last, pv);
  }
  if (!a.k.valid()) return false;
  const auto& q_shape = g.value(a.q).type.shape;
  const auto& k_shape = g.value(a.k).type.shape;
  const auto& v_shape = g.value(a.v).type.shape;
  if (q_shape.size() != rank || k_shape.size() != rank || v_shape.size() != rank) return false;
  for (std::size_t i = 0; i + 2 < rank; ++i) {
    if (q_shape[i] != k_shape[i] || q_shape[i] != v_shape[i]) return false;
  }
  a.scale = s.scale;
  if (!settle_mask(g, s, type.dtype, last, pv, q_shape[rank - 2], k_shape[rank - 2], a))
    return false;
  const bool causal = a.causal;
  const ValueId out = insert_attention(g, a, type, last, pv);
  substitute(g, log, causal ? "causal attention written out" : "attention written out", last, out,
             s.nodes);
  // Behind a squeeze, the call itself stands for the same nodes.
  const Node& made = g.node(g.value(out).producer);
  if (const Node* call = is_op(made, "aten.squeeze") ? producer(g, made.tensor("self")) : nullptr) {
    Node& attention = g.node(g.value(call->outputs.front()).producer);
    attention.covers = made.covers;
    attention.rewritten_from = made.rewritten_from;
  }
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
