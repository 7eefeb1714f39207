// Reads attention that is written out, from the product with the values up to queries and keys.
#include "rewrite/written_attention.h"

#include <cmath>
#include <set>

#include "graph/operand.h"
#include "graph/ops.h"

namespace tessera::rewrite {
namespace {

struct Scores {
  ValueId q;
  ValueId kt;
  double scale = 1;
  double cap = 0;  // of tanh, where scores are capped
  std::vector<MaskTerm> masks;
  std::vector<NodeId> nodes;
  NodeId product;
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

/// cap * tanh(scores * scale / cap): the factors so far are the cap, and no mask is inside.
bool peel_cap(const Graph& g, const Node& n, NodeId id, Scores& s) {
  if (!is_op(n, "aten.tanh") || s.cap != 0) return false;
  Scores below = s;
  below.nodes.push_back(id);
  below.cap = s.scale;
  if (!peel(g, n.tensor("self"), below) || below.masks.size() != s.masks.size()) return false;
  s = std::move(below);
  return true;
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
    s.product = id;
    return true;
  }
  return peel_scale(g, *n, id, s) || peel_mask(g, *n, id, s) || peel_cap(g, *n, id, s);
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

bool inner_is_private(const Graph& g, const std::vector<NodeId>& inner, NodeId last) {
  for (const NodeId id : inner) {
    if (id == last) continue;
    for (const ValueId v : g.node(id).outputs) {
      if (!used_only_by(g, v, inner)) return false;
    }
  }
  return true;
}

}  // namespace

std::optional<WrittenAttention> read_attention(const Graph& g, NodeId last) {
  const Node& pv = g.node(last);
  if (!is_product(pv)) return std::nullopt;
  const TensorType& type = g.value(pv.outputs.front()).type;
  const std::size_t rank = type.shape.size();
  if (rank != 3 && rank != 4) return std::nullopt;
  Scores s;
  s.nodes.push_back(last);
  const ValueId weights = through_copies(g, left_of(pv), &s.nodes);
  const Node* softmax = producer(g, weights);
  if (softmax == nullptr || (!is_op(*softmax, "aten.softmax") && !is_op(*softmax, "aten._softmax")))
    return std::nullopt;
  if (wrap_dim(softmax->integer("dim").value_or(0), rank) != rank - 1) return std::nullopt;
  s.nodes.push_back(g.value(weights).producer);
  if (!peel(g, softmax->tensor("self"), s) || !inner_is_private(g, s.nodes, last))
    return std::nullopt;
  WrittenAttention a;
  a.v = right_of(pv);
  if (g.value(a.v).type.dtype != type.dtype) return std::nullopt;
  a.q = unscaled(g, s.q, type.dtype, s);
  if (!a.q.valid()) return std::nullopt;
  const ValueId k = untransposed(g, s.kt, s);
  a.k = k.valid() ? unscaled(g, k, type.dtype, s) : through_copies(g, s.kt);
  a.k_is_transposed = !k.valid();
  if (!a.k.valid() || g.value(a.k).type.dtype != type.dtype) return std::nullopt;
  const auto& q_shape = g.value(a.q).type.shape;
  const auto& k_shape = g.value(a.k).type.shape;
  const auto& v_shape = g.value(a.v).type.shape;
  if (q_shape.size() != rank || k_shape.size() != rank || v_shape.size() != rank)
    return std::nullopt;
  for (std::size_t i = 0; i + 2 < rank; ++i) {
    if (q_shape[i] != k_shape[i] || q_shape[i] != v_shape[i]) return std::nullopt;
  }
  a.queries = q_shape[rank - 2];
  a.keys = v_shape[rank - 2];
  a.scale = s.scale;
  a.cap = s.cap;
  a.masks = std::move(s.masks);
  a.nodes = std::move(s.nodes);
  a.product = s.product;
  return a;
}

}  // namespace tessera::rewrite
