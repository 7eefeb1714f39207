// Where a stored subgraph lies in a graph: candidates by their ops from the results backwards, then
// by the form without names, which has to be the same text.
#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "rules/proposed.h"

namespace tessera::rules {
namespace {

/// "n3.0": node 3. -1 for an input.
int node_of(const std::string& name) {
  return name.starts_with("n") ? std::stoi(name.substr(1)) : -1;
}

/// The tensors among an argument's JSON, in order.
void tensors_in(const Json& j, std::vector<std::string>& out) {
  if (j.is_array()) {
    for (const Json& item : j) tensors_in(item, out);
  } else if (j.is_object() && j.contains("value")) {
    out.push_back(j.at("value").get<std::string>());
  }
}

/// Which nodes of the graph stand for which of the subgraph's. Arguments are ordered, so that from
/// a result on there is one way.
class Walk {
 public:
  Walk(const Flow& flow, const Json& nodes) : flow_(flow), nodes_(nodes) {}

  bool take(int stored, NodeId n) {
    if (const auto known = of_.find(stored); known != of_.end()) return known->second == n;
    const Json& wanted = nodes_.at(static_cast<std::size_t>(stored));
    const graph::Node& node = flow_.g.node(n);
    if (node.op != wanted.at("op").get<std::string>()) return false;
    of_[stored] = n;
    std::vector<std::string> names;
    for (const auto& [_, a] : wanted.at("arguments").items()) tensors_in(a, names);
    const std::vector<ValueId> given = graph::tensor_arguments(node);
    if (given.size() != names.size()) return false;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const int at = node_of(names[i]);
      if (at < 0) continue;
      const NodeId from = flow_.g.value(given[i]).producer;
      if (!from.valid() || !take(at, from)) return false;
    }
    return true;
  }

  [[nodiscard]] NodeSet computing() const {
    NodeSet out;
    for (const auto& [_, n] : of_)
      if (flow_.computes(n)) out.insert(n);
    return out;
  }

 private:
  const Flow& flow_;
  const Json& nodes_;
  std::map<int, NodeId> of_;
};

}  // namespace

std::vector<Pattern> find_proposed(const Flow& flow, const Json& stored) {
  const Json& subgraph = stored.at("subgraph");
  const Json& nodes = subgraph.at("nodes");
  std::vector<int> roots;
  for (const Json& o : subgraph.at("outputs")) roots.push_back(node_of(o.get<std::string>()));
  std::vector<Pattern> out;
  const std::string text = subgraph.dump();
  const std::function<void(std::size_t, const Walk&)> from_root = [&](std::size_t at,
                                                                      const Walk& so_far) {
    if (at == roots.size()) {
      auto p = propose(flow, so_far.computing(), stored.value("name", ""));
      if (p && p->body->to_json().dump() == text) out.push_back(std::move(*p));
      return;
    }
    for (const NodeId n : flow.g.order) {
      Walk walk = so_far;
      if (flow.computes(n) && walk.take(roots[at], n)) from_root(at + 1, walk);
    }
  };
  from_root(0, Walk(flow, nodes));
  return out;
}

}  // namespace tessera::rules
