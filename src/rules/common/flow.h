// The graph at the level of computation: views are transparent, so an edge runs from the node that
// makes a storage to every node that reads it.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "graph/operand.h"
#include "graph/ops.h"
#include "rules/rules.h"

namespace tessera::rules {

using graph::base_name;
using NodeSet = std::set<NodeId>;

class Flow {
 public:
  explicit Flow(const graph::Graph& g);

  const graph::Graph& g;

  /// Makes a storage of its own at every call: neither a view nor a prepack node.
  [[nodiscard]] bool computes(NodeId n) const { return computing_.contains(n); }
  [[nodiscard]] bool transparent(NodeId n) const { return transparent_.contains(n); }
  [[nodiscard]] int position(NodeId n) const { return position_.at(n); }
  /// Computing nodes whose storage `n` reads, through views.
  [[nodiscard]] const std::vector<NodeId>& before(NodeId n) const { return before_.at(n); }
  /// Computing nodes that read a storage of `n`, through views, in execution order.
  [[nodiscard]] const std::vector<NodeId>& after(NodeId n) const { return after_.at(n); }
  /// Computing nodes that read the storage of this base value, in execution order.
  [[nodiscard]] std::vector<NodeId> readers(ValueId base) const;
  /// The value, or a view of it, is what the module returns.
  [[nodiscard]] bool escapes(ValueId base) const { return escaping_.contains(base); }
  /// The computing node that makes this base value; invalid for inputs and prepacked weights.
  [[nodiscard]] NodeId producer(ValueId base) const;

  /// No path leaves the set and comes back: the set can run as one step.
  [[nodiscard]] bool convex(const NodeSet& set) const;
  /// The values of the set that somebody outside needs, in execution order.
  [[nodiscard]] std::vector<ValueId> outputs(const NodeSet& set) const;
  /// The set with every view and constant below it, down to `inputs`; `constants` takes the leaves
  /// that are not inputs.
  [[nodiscard]] NodeSet closure(const NodeSet& set, const std::vector<ValueId>& inputs,
                                std::vector<ValueId>* constants) const;
  [[nodiscard]] std::vector<NodeId> in_order(const NodeSet& set) const;

 private:
  std::set<NodeId> computing_;
  std::set<NodeId> transparent_;
  std::set<ValueId> escaping_;
  std::map<NodeId, int> position_;
  std::map<NodeId, std::vector<NodeId>> before_;
  std::map<NodeId, std::vector<NodeId>> after_;
  std::map<ValueId, std::vector<NodeId>> readers_;
};

/// Only the element type changes, between floating types: `_to_copy`, `to`. It may round
/// (graph/conversion.h).
bool is_cast(const Flow& f, NodeId n);
/// Elements move and keep their values: contiguous, clone, a reshape that copies.
bool is_move(const Flow& f, NodeId n);
bool is_pointwise(const Flow& f, NodeId n);

}  // namespace tessera::rules
