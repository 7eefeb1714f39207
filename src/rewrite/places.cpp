// Views by places in memory (as_strided), which see how the value below lies and where it begins.
//
// A rewrite puts another value in its place: the source of a copy that it drops, a part of a wider
// product. Such a view then looks at a copy of that which lies as the old value did.
#include "rewrite/places.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

namespace tessera::rewrite {
namespace {

bool by_places(const Node& n) {
  return is_op(n, "aten.as_strided") || is_op(n, "aten.as_strided_copy") ||
         is_op(n, "aten.as_strided_scatter");
}

/// Whether PyTorch gives back its argument's memory: traced copies are ops of their own, but for
/// `contiguous` and `reshape` of what lies well already.
bool passes_memory(const Graph& g, const Node& n) {
  const ValueId source = n.tensor("self");
  if (!source.valid() || n.outputs.empty()) return false;
  const TensorType& from = g.value(source).type;
  const TensorType& to = g.value(n.outputs.front()).type;
  if (from.dtype != to.dtype) return false;
  if (is_op(n, "aten.contiguous") || is_op(n, "aten.to"))
    return from.shape == to.shape && from.strides == to.strides;
  if (is_op(n, "aten.as_strided")) return true;
  return kind_of(n) == OpKind::view && view_step(g, g.value(n.outputs.front()).producer, 0);
}

/// The value whose memory `v` looks at.
ValueId memory_of(const Graph& g, ValueId v) {
  for (const Node* n = producer(g, v); n != nullptr && passes_memory(g, *n); n = producer(g, v))
    v = n->tensor("self");
  return v;
}

/// Whether the result begins as far from its memory's beginning as what the op was given does.
bool begins_alike(const Node& n) {
  return base_op(n).ends_with("_scatter") || n.op == "aten.view.dtype";
}

/// The value whose memory `v` looks at; behind it what that depends on, and so on.
std::vector<ValueId> memories_of(const Graph& g, ValueId v) {
  std::vector<ValueId> found = {memory_of(g, v)};
  for (const Node* n = producer(g, found.back()); n != nullptr; n = producer(g, found.back())) {
    if (!begins_alike(*n) || !n->tensor("self").valid()) break;
    found.push_back(memory_of(g, n->tensor("self")));
  }
  return found;
}

void set(Node& n, std::string_view name, const Argument& to) {
  for (auto& [own, argument] : n.arguments) {
    if (own != name) continue;
    argument = to;
    return;
  }
  n.arguments.emplace_back(name, to);
}

/// Where in `memory` the view begins; none where strides cannot say it.
std::optional<int64_t> begin_of(const Graph& g, const Node& view, ValueId memory) {
  if (const auto said = view.integer("storage_offset")) return said;
  const Operand self = resolve(g, view.tensor("self"));
  return self.base == memory ? std::optional(self.offset) : std::nullopt;
}

/// From the largest stride to the smallest.
std::vector<int64_t> memory_order(const TensorType& t) {
  std::vector<int64_t> order(t.shape.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return t.strides[static_cast<std::size_t>(a)] > t.strides[static_cast<std::size_t>(b)];
  });
  return order;
}

/// A copy of `v` without gaps, its dims in the memory order of `as`.
ValueId laid_as(Graph& g, ValueId v, const TensorType& as, NodeId before) {
  const Node like = g.node(before);
  const std::vector<int64_t> order = memory_order(as);
  std::vector<int64_t> back(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    back[static_cast<std::size_t>(order[i])] = static_cast<int64_t>(i);
  const ValueId turned = permuted(g, v, order, before, like);
  return permuted(g, row_major_copy(g, turned, before, like), back, before, like);
}

}  // namespace

std::vector<Looked> looked_at(Graph& g) {
  std::vector<Looked> found;
  for (const NodeId id : g.order) {
    Node& n = g.node(id);
    if (!by_places(n)) continue;
    const ValueId self = n.tensor("self");
    const std::vector<ValueId> memories = memories_of(g, self);
    const ValueId memory = memories.front();
    if (g.value(memory).origin != Origin::node) continue;
    const std::optional<int64_t> begin = begin_of(g, n, memory);
    if (memory != self && begin && !is_op(n, "aten.as_strided_scatter")) {
      set(n, "self", memory);
      set(n, "storage_offset", *begin);
    }
    found.push_back({id, memories, g.value(n.tensor("self")).type});
  }
  return found;
}

void keep_memory(Graph& g, const std::vector<Looked>& looked) {
  for (const Looked& l : looked) {
    if (std::find(g.order.begin(), g.order.end(), l.view) == g.order.end()) continue;
    const ValueId now = g.node(l.view).tensor("self");
    const bool stands = memories_of(g, now) == l.memories;
    if (stands && g.value(now).type.strides == l.type.strides) continue;
    const ValueId copy = laid_as(g, now, l.type, l.view);
    set(g.node(l.view), "self", copy);
  }
}

}  // namespace tessera::rewrite
