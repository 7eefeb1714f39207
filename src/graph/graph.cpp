// The graph container: values, nodes, their order and uses.
#include "graph/graph.h"

#include <algorithm>
#include <fmt/format.h>
#include <stdexcept>
#include <unordered_set>

#include "graph/ops.h"

namespace tessera::graph {
namespace {

template <class F>
void for_each_tensor(const Argument& a, F&& f) {
  if (const auto* v = std::get_if<ValueId>(&a)) {
    f(*v);
  } else if (const auto* list = std::get_if<ArgumentList>(&a)) {
    for (const Argument& item : *list) for_each_tensor(item, f);
  }
}

void replace_in(Argument& a, ValueId from, ValueId to) {
  if (auto* v = std::get_if<ValueId>(&a)) {
    if (*v == from) *v = to;
  } else if (auto* list = std::get_if<ArgumentList>(&a)) {
    for (Argument& item : *list) replace_in(item, from, to);
  }
}

}  // namespace

int64_t TensorType::numel() const {
  return layout::numel(shape);
}

bool TensorType::contiguous() const {
  int64_t expected = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

bool changes_device(const Graph& g, const Node& n) {
  const ValueId in = n.tensor(n.find("self") != nullptr ? "self" : "input");
  return in.valid() && !n.outputs.empty() &&
         g.value(in).device != g.value(n.outputs.front()).device;
}

std::string to_string(const TensorType& t) {
  std::string out = fmt::format("{}[{}]", short_name(t.dtype), fmt::join(t.shape, ","));
  if (!t.contiguous()) out += fmt::format(":[{}]", fmt::join(t.strides, ","));
  return out;
}

const Argument* Node::find(std::string_view argument) const {
  for (const auto& [name, value] : arguments) {
    if (name == argument) return &value;
  }
  return nullptr;
}

ValueId Node::tensor(std::string_view argument) const {
  const Argument* a = find(argument);
  const auto* v = a == nullptr ? nullptr : std::get_if<ValueId>(a);
  return v == nullptr ? ValueId{} : *v;
}

std::optional<int64_t> Node::integer(std::string_view argument) const {
  const Argument* a = find(argument);
  if (a == nullptr) return std::nullopt;
  if (const auto* i = std::get_if<int64_t>(a)) return *i;
  if (const auto* b = std::get_if<bool>(a)) return *b ? 1 : 0;
  return std::nullopt;
}

std::optional<double> Node::number(std::string_view argument) const {
  const Argument* a = find(argument);
  if (a == nullptr) return std::nullopt;
  if (const auto* d = std::get_if<double>(a)) return *d;
  if (const auto i = integer(argument)) return static_cast<double>(*i);
  return std::nullopt;
}

std::optional<bool> Node::flag(std::string_view argument) const {
  const Argument* a = find(argument);
  const auto* b = a == nullptr ? nullptr : std::get_if<bool>(a);
  return b == nullptr ? std::nullopt : std::optional(*b);
}

std::vector<int64_t> Node::integers(std::string_view argument) const {
  const Argument* a = find(argument);
  if (a == nullptr) return {};
  if (const auto* i = std::get_if<int64_t>(a)) return {*i};
  std::vector<int64_t> out;
  if (const auto* list = std::get_if<ArgumentList>(a)) {
    for (const Argument& item : *list) {
      if (const auto* i = std::get_if<int64_t>(&item)) out.push_back(*i);
    }
  }
  return out;
}

std::string Node::text(std::string_view argument) const {
  const Argument* a = find(argument);
  const auto* s = a == nullptr ? nullptr : std::get_if<std::string>(a);
  return s == nullptr ? std::string{} : *s;
}

ValueId Graph::add_value(Value value) {
  values_.push_back(std::move(value));
  return ValueId(values_.size() - 1);
}

NodeId Graph::add_node(Node node, std::optional<NodeId> before) {
  if (node.covers.empty()) node.covers = {node.name};
  nodes_.push_back(std::move(node));
  const NodeId id(nodes_.size() - 1);
  const Node& added = nodes_.back();
  for (std::size_t i = 0; i < added.outputs.size(); ++i) {
    Value& v = value(added.outputs[i]);
    v.origin = Origin::node;
    v.producer = id;
    v.output_index = static_cast<int>(i);
  }
  order.insert(before ? std::find(order.begin(), order.end(), *before) : order.end(), id);
  return id;
}

void Graph::erase(NodeId id) {
  for (const ValueId v : node(id).outputs) {
    if (is_output(v) || !uses(v).empty()) {
      throw std::logic_error(fmt::format("erasing `{}`, whose output is in use", node(id).name));
    }
  }
  std::erase(order, id);
}

void Graph::replace_uses(ValueId from, ValueId to) {
  for (const NodeId id : order) {
    for (auto& [name, argument] : node(id).arguments) replace_in(argument, from, to);
  }
  std::replace(outputs.begin(), outputs.end(), from, to);
  for (auto* list : {&mutations, &assertions}) {
    for (auto& [v, text] : *list)
      if (v == from) v = to;
  }
}

void Graph::erase_dead() {
  std::vector<bool> live(values_.size(), false);
  const auto mark = [&](ValueId v) { live[static_cast<std::size_t>(v.index)] = true; };
  for (const ValueId v : results()) mark(v);
  std::vector<NodeId> kept;
  for (std::size_t i = order.size(); i-- > 0;) {
    const Node& n = node(order[i]);
    const bool used = std::any_of(n.outputs.begin(), n.outputs.end(), [&](ValueId v) {
      return live[static_cast<std::size_t>(v.index)];
    });
    if (!used && !draws(n)) continue;
    for (const ValueId v : tensor_arguments(n)) mark(v);
    kept.push_back(order[i]);
  }
  order.assign(kept.rbegin(), kept.rend());
}

std::vector<Use> Graph::uses(ValueId id) const {
  std::vector<Use> out;
  for (const NodeId n : order) {
    for (const auto& argument : node(n).arguments) {
      for_each_tensor(argument.second, [&](ValueId v) {
        if (v == id) out.push_back({n, argument.first});
      });
    }
  }
  return out;
}

bool Graph::is_output(ValueId id) const {
  const std::vector<ValueId> all = results();
  return std::find(all.begin(), all.end(), id) != all.end();
}

std::vector<ValueId> Graph::results() const {
  std::vector<ValueId> all = outputs;
  for (const auto* list : {&mutations, &assertions})
    for (const auto& [v, text] : *list) all.push_back(v);
  return all;
}

std::optional<ValueId> Graph::find_value(std::string_view wanted) const {
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (values_[i].name == wanted) return ValueId(i);
  }
  return std::nullopt;
}

std::optional<NodeId> Graph::find_node(std::string_view wanted) const {
  for (const NodeId id : order) {
    if (node(id).name == wanted) return id;
  }
  return std::nullopt;
}

std::string Graph::fresh_name(std::string_view stem) const {
  std::unordered_set<std::string_view> taken;
  for (const Value& v : values_) taken.insert(v.name);
  for (const Node& n : nodes_) taken.insert(n.name);
  std::string candidate(stem);
  for (int i = 1; taken.contains(candidate); ++i) candidate = fmt::format("{}_{}", stem, i);
  return candidate;
}

std::string_view base_name(std::string_view op) {
  const auto first = op.find('.');
  const auto second = first == std::string_view::npos ? first : op.find('.', first + 1);
  return second == std::string_view::npos ? op : op.substr(0, second);
}

const Node* producer(const Graph& g, ValueId v) {
  const NodeId id = v.valid() ? g.value(v).producer : NodeId{};
  return id.valid() ? &g.node(id) : nullptr;
}

std::size_t wrap_dim(int64_t dim, std::size_t rank) {
  return static_cast<std::size_t>(dim < 0 ? dim + static_cast<int64_t>(rank) : dim);
}

std::vector<ValueId> tensor_arguments(const Node& node) {
  std::vector<ValueId> out;
  for (const auto& [name, argument] : node.arguments) {
    for_each_tensor(argument, [&](ValueId v) { out.push_back(v); });
  }
  return out;
}

}  // namespace tessera::graph
