#include "rules/common/attention_near_misses.h"

#include <optional>

#include "rules/common/flow.h"

#include "rewrite/written_attention.h"

namespace tessera::rules {

using graph::Node;
using graph::OpKind;

namespace {

ValueId first_tensor(const Node& n) {
  const auto tensors = graph::tensor_arguments(n);
  return tensors.empty() ? ValueId{} : tensors.front();
}

bool is_product(const Node& n) {
  const auto name = base_name(n.op);
  return name == "aten.matmul" || name == "aten.bmm";
}

bool keeps_values(const Node& n) {
  const auto name = base_name(n.op);
  return graph::kind_of(n) == OpKind::view || name == "aten.clone" || name == "aten._to_copy" ||
         name == "aten.contiguous" || name == "aten.to";
}

/// The walk from the softmax's input to the product of queries and keys.
struct Scores {
  NodeId product;
  std::vector<NodeId> between;
  std::string obstacle;
};

std::string obstacle_of(const Node& n) {
  const auto name = base_name(n.op);
  if (name == "aten.tanh")
    return "the scores are capped by `tanh`, in another form than cap * tanh(scores / cap)";
  if (name == "aten.add" || name == "aten.mul" || name == "aten.div" ||
      name == "aten.masked_fill" || name == "aten.where")
    return {};
  return fmt::format(
      "`{}` changes the scores between the product and the softmax; attention takes a number as "
      "scale and a mask that is added or filled in",
      name);
}

/// Over pointwise work on the larger operand, where the scores are.
Scores walk(const graph::Graph& g, ValueId v) {
  Scores s;
  for (int steps = 0; steps < 24; ++steps) {
    const Node* n = producer(g, v);
    if (n == nullptr || n->prepack) break;
    const NodeId id = g.value(v).producer;
    if (is_product(*n)) {
      s.product = id;
      break;
    }
    if (keeps_values(*n)) {
      v = first_tensor(*n);
      continue;
    }
    if (graph::kind_of(*n) != OpKind::pointwise) break;
    s.between.push_back(id);
    if (s.obstacle.empty()) s.obstacle = obstacle_of(*n);
    ValueId next;
    for (const ValueId a : graph::tensor_arguments(*n)) {
      const Node* p = producer(g, a);
      const bool scores = p != nullptr && !p->prepack && is_floating(g.value(a).type.dtype) &&
                          g.value(a).type.numel() == g.value(v).type.numel();
      if (scores && !next.valid()) next = a;
    }
    if (!next.valid()) break;
    v = next;
  }
  return s;
}

/// The number that scores are filled with, where adding it is not the same.
std::optional<double> filled_with(const graph::Graph& g, const Node& n) {
  const bool fills = base_name(n.op) == "aten.masked_fill";
  if (!fills && base_name(n.op) != "aten.where") return std::nullopt;
  for (const char* argument : {"value", "self", "other"}) {
    const auto number = rewrite::scalar_argument(g, n, argument);
    if (number && *number > rewrite::absorbs_scores) return number;
  }
  return std::nullopt;
}

std::string why_not(const Flow& flow, const Scores& s, ValueId weights, bool dropout) {
  if (dropout)
    return "dropout of the attention weights draws random numbers: call .eval(), or set p = 0";
  if (flow.escapes(weights) || flow.readers(weights).size() > 1)
    return "the attention weights are needed themselves: an attention kernel never writes them; "
           "return the result alone (need_weights=False)";
  if (!s.obstacle.empty()) return s.obstacle;
  for (const NodeId n : s.between)
    if (const auto filled = filled_with(flow.g, flow.g.node(n)))
      return fmt::format(
          "the mask fills scores with {:g}: only -inf, numbers below {:g} and additive masks mean "
          "the same in an attention kernel where a row is masked as a whole; fill with "
          "float('-inf'), or pass attn_mask to scaled_dot_product_attention",
          *filled, rewrite::absorbs_scores);
  return "it is not one call of scaled_dot_product_attention: heads, lengths, element types or the "
         "order of scale and mask differ from softmax(scale * Q K^T + mask) V; call it directly";
}

}  // namespace

std::vector<Rejection> near_attention(const graph::Graph& g) {
  const Flow flow(g);
  std::vector<Rejection> found;
  for (const NodeId id : g.order) {
    const Node& n = g.node(id);
    if (!is_product(n)) continue;
    bool dropout = false;
    ValueId v = n.tensor("self");
    const Node* p = producer(g, v);
    while (p != nullptr && (keeps_values(*p) || base_name(p->op) == "aten.dropout" ||
                            base_name(p->op) == "aten.native_dropout")) {
      dropout = dropout || graph::kind_of(*p) == OpKind::random;
      v = first_tensor(*p);
      p = producer(g, v);
    }
    if (p == nullptr) continue;
    const auto name = base_name(p->op);
    if (name != "aten.softmax" && name != "aten._softmax") continue;
    // The rule itself says what becomes of scores that it sees capped.
    if (const auto written = rewrite::read_attention(g, id); written && written->cap != 0) continue;
    const Scores s = walk(g, p->tensor("self"));
    if (!s.product.valid()) continue;
    NodeSet nodes(s.between.begin(), s.between.end());
    nodes.insert({s.product, g.value(v).producer, id});
    found.push_back({"attention", flow.in_order(nodes), why_not(flow, s, v, dropout)});
  }
  return found;
}

}  // namespace tessera::rules
