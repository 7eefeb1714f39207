#include "compose/plan.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <set>

#include "graph/operand.h"

namespace tessera::composer {
namespace {

using graph::Graph;
using graph::NodeId;
using graph::ValueId;

inline constexpr Code no_order{"TS0902", "bug.plan_has_no_order"};

// A step of the plan before it is printed: a placed pattern (index) or a single node.
struct Unit {
  int placed = -1;
  NodeId node;
};

class Planner {
 public:
  Planner(const Graph& g, const std::vector<Placed>& placed) : g_(g), placed_(placed) {
    for (std::size_t i = 0; i < placed.size(); ++i) {
      for (const ValueId v : placed[i].pattern->outputs) made_by_[v] = static_cast<int>(i);
    }
  }

  Status run() {
    for (const ValueId v : g_.outputs) TESSERA_CHECK(demand(v));
    for (const auto& [v, target] : g_.mutations) TESSERA_CHECK(demand(v));
    return {};
  }

  [[nodiscard]] const std::vector<Unit>& units() const { return units_; }

 private:
  // Depth-first: everything that a unit reads is placed before it.
  Status demand(ValueId v) {
    if (!v.valid() || g_.value(v).origin != graph::Origin::node || ready_.contains(v)) return {};
    Unit unit;
    std::vector<ValueId> reads;
    std::vector<ValueId> writes;
    if (const auto it = made_by_.find(v); it != made_by_.end()) {
      const rules::Pattern& p = *placed_[static_cast<std::size_t>(it->second)].pattern;
      unit.placed = it->second;
      reads = p.inputs;
      writes = p.outputs;
    } else {
      unit.node = g_.value(v).producer;
      reads = graph::tensor_arguments(g_.node(unit.node));
      writes = g_.node(unit.node).outputs;
    }
    if (!open_.insert(v).second) {
      return error(fail(no_order, "the plan needs `{}` to compute itself", g_.value(v).name)
                       .help("this is a fault of tessera; please report it with the model"));
    }
    for (const ValueId r : reads) TESSERA_CHECK(demand(r));
    open_.erase(v);
    // A unit with several outputs may have been placed through another one meanwhile.
    if (ready_.contains(v)) return {};
    units_.push_back(unit);
    for (const ValueId w : writes) {
      // A node of a pattern may be recomputed by itself; what a kernel makes stays the kernel's.
      if (unit.placed >= 0 || !made_by_.contains(w)) ready_.insert(w);
    }
    ready_.insert(v);
    return {};
  }

  const Graph& g_;
  const std::vector<Placed>& placed_;
  std::map<ValueId, int> made_by_;
  std::set<ValueId> ready_;
  std::set<ValueId> open_;
  std::vector<Unit> units_;
};

Json names(const Graph& g, const std::vector<ValueId>& values) {
  Json out = Json::array();
  for (const ValueId v : values) out.push_back(g.value(v).name);
  return out;
}

Json kernel_step(const Graph& g, const Placed& placed) {
  Json outputs = Json::array();
  for (const ValueId v : placed.pattern->outputs) {
    const graph::Value& value = g.value(v);
    outputs.push_back({{"value", value.name},
                       {"dtype", name_of(value.type.dtype)},
                       {"shape", value.type.shape},
                       {"strides", value.type.strides}});
  }
  return {{"kind", placed.candidate.contains("call") ? "call" : "kernel"},
          {"pattern", rules::to_json(g, *placed.pattern)},
          {"inputs", names(g, placed.pattern->inputs)},
          {"outputs", std::move(outputs)},
          {"candidate", placed.candidate},
          {"evidence", placed.evidence}};
}

}  // namespace

Result<Json> make_plan(const Graph& g, const std::vector<Placed>& placed,
                       const std::map<NodeId, std::string>& why_left, const Json& about) {
  Planner planner(g, placed);
  TESSERA_CHECK(planner.run());

  Json plan = {{"schema", "tessera.plan/1"}};
  for (const auto& [key, value] : about.items()) plan[key] = value;
  plan["graph"] = graph::to_json(g);
  Json steps = Json::array();
  Json leftover = Json::array();
  for (const Unit& unit : planner.units()) {
    if (unit.placed >= 0) {
      steps.push_back(kernel_step(g, placed[static_cast<std::size_t>(unit.placed)]));
      continue;
    }
    const graph::Node& node = g.node(unit.node);
    if (node.prepack) {
      steps.push_back(
          {{"kind", "prepack"}, {"nodes", {node.name}}, {"outputs", names(g, node.outputs)}});
      continue;
    }
    steps.push_back({{"kind", "aten"}, {"node", node.name}});
    if (graph::is_view(g, unit.node)) continue;
    const auto reason = why_left.find(unit.node);
    leftover.push_back(
        {{"node", node.name},
         {"op", node.op},
         {"reason", reason == why_left.end() ? "no kernel was chosen for it" : reason->second}});
  }
  plan["steps"] = std::move(steps);
  plan["leftover"] = std::move(leftover);
  return plan;
}

}  // namespace tessera::composer
