// Key and value heads repeated for grouped queries: enable_gqa on the heads as they are.
#include "rewrite/rewrite.h"

namespace tessera::rewrite {
namespace {

struct Repeated {
  ValueId source;  // [batch, kv_heads, length, width]
  int64_t times = 1;
};

/// repeat_interleave(x, times, dim=1).
std::optional<Repeated> interleaved(const Node& n) {
  if (!is_op(n, "aten.repeat_interleave") || n.integer("dim").value_or(0) != 1) return std::nullopt;
  const auto times = n.integer("repeats");
  return times ? std::optional(Repeated{n.tensor("self"), *times}) : std::nullopt;
}

/// view(clone(expand(unsqueeze(x, 2)))): [b, h, l, d] -> [b, h, times, l, d] -> [b, h * times, l,
/// d].
std::optional<Repeated> expanded(const Graph& g, const Node& n) {
  const bool reshapes = is_op(n, "aten.view") || is_op(n, "aten._unsafe_view") ||
                        is_op(n, "aten.reshape") || is_op(n, "aten.flatten");
  if (!reshapes) return std::nullopt;
  const ValueId wide = through_copies(g, n.tensor("self"));
  const Node* expand = producer(g, wide);
  if (expand == nullptr || !is_op(*expand, "aten.expand")) return std::nullopt;
  const auto& to = g.value(wide).type.shape;
  const auto& from = g.value(expand->tensor("self")).type.shape;
  const auto& out = g.value(n.outputs.front()).type.shape;
  if (to.size() != 5 || from.size() != 5 || out.size() != 4 || from[2] != 1) return std::nullopt;
  for (const std::size_t i : {0, 1, 3, 4}) {
    if (from[i] != to[i]) return std::nullopt;
  }
  if (out != std::vector<int64_t>{to[0], to[1] * to[2], to[3], to[4]}) return std::nullopt;
  const Node* unsqueeze = producer(g, through_copies(g, expand->tensor("self")));
  if (unsqueeze == nullptr || !is_op(*unsqueeze, "aten.unsqueeze") ||
      wrap_dim(*unsqueeze->integer("dim"), 5) != 2)
    return std::nullopt;
  return Repeated{unsqueeze->tensor("self"), to[2]};
}

std::optional<Repeated> repeated(const Graph& g, ValueId v) {
  const Node* n = producer(g, through_copies(g, v));
  if (n == nullptr) return std::nullopt;
  auto r = interleaved(*n);
  if (!r) r = expanded(g, *n);
  if (!r || r->times < 2 || g.value(r->source).type.shape.size() != 4 ||
      g.value(r->source).type.dtype != g.value(v).type.dtype) {
    return std::nullopt;
  }
  return r;
}

}  // namespace

bool rewrite_grouped_heads(Graph& g, RewriteLog& log) {
  bool changed = false;
  for (const NodeId id : g.order) {
    Node& n = g.node(id);
    if (!is_op(n, "aten.scaled_dot_product_attention") || n.flag("enable_gqa").value_or(false))
      continue;
    const auto k = repeated(g, n.tensor("key"));
    const auto v = repeated(g, n.tensor("value"));
    if (!k || !v || k->times != v->times) continue;
    for (auto& [name, argument] : n.arguments) {
      if (name == "key") argument = k->source;
      if (name == "value") argument = v->source;
      if (name == "enable_gqa") argument = true;
    }
    if (n.rewritten_from.empty()) n.rewritten_from = "repeated key and value heads";
    log.push_back({.what = "repeated key and value heads", .result = n.name, .nodes = n.covers});
    changed = true;
  }
  if (changed) g.erase_dead();
  return changed;
}

}  // namespace tessera::rewrite
