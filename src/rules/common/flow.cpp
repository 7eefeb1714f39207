#include "rules/common/flow.h"

#include <algorithm>

namespace tessera::rules {

using graph::OpKind;

Flow::Flow(const graph::Graph& graph) : g(graph) {
  int at = 0;
  for (NodeId n : g.order) {
    position_[n] = at++;
    before_[n];
    after_[n];
    const graph::Node& node = g.node(n);
    if (node.prepack || node.outputs.empty()) continue;
    const bool view = std::all_of(node.outputs.begin(), node.outputs.end(),
                                  [&](ValueId v) { return graph::resolve(g, v).base != v; });
    (view ? transparent_ : computing_).insert(n);
  }
  for (NodeId n : g.order) {
    if (!computes(n)) continue;
    for (ValueId v : graph::tensor_arguments(g.node(n))) {
      const ValueId base = graph::resolve(g, v).base;
      auto& list = readers_[base];
      if (list.empty() || list.back() != n) list.push_back(n);
      const NodeId from = producer(base);
      if (!from.valid()) continue;
      auto& in = before_[n];
      if (std::find(in.begin(), in.end(), from) == in.end()) in.push_back(from);
      auto& out = after_[from];
      if (std::find(out.begin(), out.end(), n) == out.end()) out.push_back(n);
    }
  }
  for (const ValueId v : g.results())
    if (v.valid()) escaping_.insert(graph::resolve(g, v).base);
}

std::vector<NodeId> Flow::readers(ValueId base) const {
  auto it = readers_.find(base);
  return it == readers_.end() ? std::vector<NodeId>{} : it->second;
}

NodeId Flow::producer(ValueId base) const {
  const NodeId n = g.value(base).producer;
  return n.valid() && computes(n) ? n : NodeId{};
}

bool Flow::convex(const NodeSet& set) const {
  int last = 0;
  for (NodeId n : set) last = std::max(last, position(n));
  std::set<NodeId> seen;
  std::vector<NodeId> stack;
  auto push = [&](NodeId from) {
    for (NodeId next : after(from))
      if (!set.contains(next) && position(next) < last && seen.insert(next).second)
        stack.push_back(next);
  };
  for (NodeId n : set) push(n);
  while (!stack.empty()) {
    const NodeId n = stack.back();
    stack.pop_back();
    for (NodeId next : after(n))
      if (set.contains(next)) return false;
    push(n);
  }
  return true;
}

std::vector<ValueId> Flow::outputs(const NodeSet& set) const {
  std::vector<ValueId> result;
  for (NodeId n : in_order(set)) {
    for (ValueId v : g.node(n).outputs) {
      const auto users = readers(v);
      const bool outside =
          std::any_of(users.begin(), users.end(), [&](NodeId u) { return !set.contains(u); });
      if (outside || escapes(v)) result.push_back(v);
    }
  }
  return result;
}

NodeSet Flow::closure(const NodeSet& set, const std::vector<ValueId>& inputs,
                      std::vector<ValueId>* constants) const {
  NodeSet covered = set;
  std::vector<NodeId> todo(set.begin(), set.end());
  std::set<ValueId> seen(inputs.begin(), inputs.end());
  while (!todo.empty()) {
    const NodeId n = todo.back();
    todo.pop_back();
    for (ValueId v : graph::tensor_arguments(g.node(n))) {
      if (!seen.insert(v).second) continue;
      const NodeId from = g.value(v).producer;
      if (!from.valid()) {
        constants->push_back(v);
      } else if (covered.insert(from).second) {
        todo.push_back(from);
      }
    }
  }
  return covered;
}

std::vector<NodeId> Flow::in_order(const NodeSet& set) const {
  std::vector<NodeId> list(set.begin(), set.end());
  std::sort(list.begin(), list.end(),
            [&](NodeId a, NodeId b) { return position(a) < position(b); });
  return list;
}

namespace {

const graph::TensorType* first_input(const graph::Graph& g, const graph::Node& node) {
  const auto tensors = graph::tensor_arguments(node);
  return tensors.size() == 1 ? &g.value(tensors[0]).type : nullptr;
}

}  // namespace

bool is_cast(const Flow& f, NodeId n) {
  const graph::Node& node = f.g.node(n);
  const auto name = base_name(node.op);
  if (name != "aten._to_copy" && name != "aten.to") return false;
  const graph::TensorType* from = first_input(f.g, node);
  if (from == nullptr || node.outputs.size() != 1) return false;
  const graph::TensorType& to = f.g.value(node.outputs[0]).type;
  return (is_floating(from->dtype) || from->dtype == DType::boolean) && is_floating(to.dtype) &&
         from->shape == to.shape;
}

bool is_move(const Flow& f, NodeId n) {
  const graph::Node& node = f.g.node(n);
  // A shape change that strides cannot express moves data, whatever the op is called.
  static const std::set<std::string_view> row_major{
      "aten.clone", "aten.contiguous",   "aten.reshape",   "aten._reshape_copy", "aten.flatten",
      "aten.view",  "aten._unsafe_view", "aten.unflatten", "aten.view_as",       "aten.squeeze"};
  if (!f.computes(n) || !row_major.contains(base_name(node.op))) return false;
  const graph::TensorType* from = first_input(f.g, node);
  if (from == nullptr || node.outputs.size() != 1) return false;
  const graph::TensorType& to = f.g.value(node.outputs[0]).type;
  return from->dtype == to.dtype && from->numel() == to.numel();
}

bool is_pointwise(const Flow& f, NodeId n) {
  return graph::kind_of(f.g.node(n)) == OpKind::pointwise;
}

}  // namespace tessera::rules
