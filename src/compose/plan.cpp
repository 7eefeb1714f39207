#include "compose/plan.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <set>

#include "graph/operand.h"
#include "graph/ops.h"

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
    for (const NodeId n : g.order)
      if (graph::draws(g.node(n))) drawing_.push_back(n);
  }

  Status run() {
    for (const ValueId v : g_.results()) TESSERA_CHECK(demand(v));
    if (!drawing_.empty()) TESSERA_CHECK(demand(g_.node(drawing_.back()).outputs.front()));
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
      const Placed& placed = placed_[static_cast<std::size_t>(it->second)];
      unit.placed = it->second;
      reads = placed.pattern->inputs;
      for (const int spared : spared_inputs(g_, placed))
        reads[static_cast<std::size_t>(spared)] = ValueId{};
      writes = placed.pattern->outputs;
    } else {
      unit.node = g_.value(v).producer;
      reads = graph::tensor_arguments(g_.node(unit.node));
      const auto drawing = std::find(drawing_.begin(), drawing_.end(), unit.node);
      if (drawing != drawing_.begin() && drawing != drawing_.end())
        reads.push_back(g_.node(*std::prev(drawing)).outputs.front());
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
  std::vector<NodeId> drawing_;  // each after the one before it
  std::set<ValueId> ready_;
  std::set<ValueId> open_;
  std::vector<Unit> units_;
};

Json names(const Graph& g, const std::vector<ValueId>& values) {
  Json out = Json::array();
  for (const ValueId v : values) out.push_back(g.value(v).name);
  return out;
}

Json step_json(const Graph& g, const Placed& placed) {
  Json outputs = Json::array();
  for (const ValueId v : placed.pattern->outputs) {
    const graph::Value& value = g.value(v);
    outputs.push_back({{"value", value.name},
                       {"dtype", name_of(value.type.dtype)},
                       {"shape", value.type.shape},
                       {"strides", value.type.strides}});
  }
  Json evidence = kernel::to_json(placed.winner.evidence);
  evidence["eager_ms"] = placed.eager_ms;
  Json step = {{"kind", placed.winner.candidate.call ? "call" : "kernel"},
               {"pattern", rules::to_json(g, *placed.pattern)},
               {"inputs", names(g, placed.pattern->inputs)},
               {"outputs", std::move(outputs)},
               {"candidate", kernel::wire_form(placed.winner)},
               {"evidence", std::move(evidence)}};
  if (const std::vector<int> spared = spared_inputs(g, placed); !spared.empty())
    step["spared"] = spared;
  return step;
}

Json step_json(const Graph& g, const Prepack& step) {
  const graph::Node& node = g.node(step.node);
  return {{"kind", "prepack"}, {"nodes", {node.name}}, {"outputs", names(g, node.outputs)}};
}

Json step_json(const Graph& g, const Aten& step) {
  return {{"kind", "aten"}, {"node", g.node(step.node).name}};
}

/// Nothing that it is made of comes from outside, nor from chance.
bool made_of_numbers(const Graph& g, ValueId v) {
  std::set<ValueId> seen = {v};
  std::vector<ValueId> todo = {v};
  while (!todo.empty()) {
    const graph::Value& value = g.value(todo.back());
    todo.pop_back();
    if (value.origin != graph::Origin::node) {
      if (!value.literal) return false;
      continue;
    }
    const graph::Node& n = g.node(value.producer);
    if (graph::draws(n) || graph::kind_of(n) == graph::OpKind::opaque) return false;
    for (const ValueId read : graph::tensor_arguments(n))
      if (seen.insert(read).second) todo.push_back(read);
  }
  return true;
}

}  // namespace

std::vector<int> spared_inputs(const Graph& g, const Placed& placed) {
  std::vector<int> out;
  for (const int i : placed.winner.candidate.unread) {
    const auto at = static_cast<std::size_t>(i);
    // Another input stands in its place, which has to be there.
    if (at == 0 || at >= placed.pattern->inputs.size()) continue;
    if (made_of_numbers(g, placed.pattern->inputs[at])) out.push_back(i);
  }
  return out;
}

Result<std::vector<int>> unneeded(const Graph& g, const std::vector<Placed>& placed) {
  Planner planner(g, placed);
  TESSERA_CHECK(planner.run());
  std::set<int> needed;
  for (const Unit& u : planner.units()) needed.insert(u.placed);
  std::vector<int> out;
  for (int i = 0; i < static_cast<int>(placed.size()); ++i)
    if (!needed.contains(i)) out.push_back(i);
  return out;
}

std::string_view Plan::kind() const {
  bool synthesized = false;
  bool library = !leftover.empty();
  for (const Step& step : steps) {
    const auto* placed = std::get_if<Placed>(&step);
    if (placed == nullptr) continue;
    const bool of_library = placed->winner.candidate.kind == kernel::Kind::library;
    (of_library ? library : synthesized) = true;
  }
  if (synthesized && library) return "mixed";
  return synthesized ? "synthesized" : library ? "library" : "none";
}

Result<Plan> make_plan(const graph::Graph& g, const std::vector<Placed>& placed,
                       const std::map<NodeId, std::string>& why_left, Target target) {
  Planner planner(g, placed);
  TESSERA_CHECK(planner.run());

  Plan plan{.graph = &g, .target = std::move(target)};
  for (const Unit& unit : planner.units()) {
    if (unit.placed >= 0) {
      plan.steps.emplace_back(placed[static_cast<std::size_t>(unit.placed)]);
      continue;
    }
    if (g.node(unit.node).prepack) {
      plan.steps.emplace_back(Prepack{unit.node});
      continue;
    }
    plan.steps.emplace_back(Aten{unit.node});
    if (graph::is_view(g, unit.node)) continue;
    const auto reason = why_left.find(unit.node);
    plan.leftover.push_back(
        {unit.node, reason == why_left.end() ? "no kernel was chosen for it" : reason->second});
  }
  return plan;
}

Json leftover_json(const Plan& plan) {
  Json out = Json::array();
  for (const Leftover& left : plan.leftover) {
    const graph::Node& node = plan.graph->node(left.node);
    out.push_back({{"node", node.name}, {"op", node.op}, {"reason", left.reason}});
  }
  return out;
}

Json to_json(const Plan& plan) {
  const graph::Graph& g = *plan.graph;
  Json steps = Json::array();
  for (const Step& step : plan.steps)
    steps.push_back(std::visit([&](const auto& s) { return step_json(g, s); }, step));
  return {{"schema", "tessera.plan/1"},
          {"name", g.name},
          {"device", g.device},
          {"device_name", plan.target.device_name},
          {"arch", plan.target.arch},
          {"precision", name_of(g.precision)},
          {"leftover_runner", plan.leftover_runner},
          {"toolchain", plan.target.toolchain},
          {"graph", graph::to_json(g)},
          {"steps", std::move(steps)},
          {"leftover", leftover_json(plan)},
          {"kind", plan.kind()},
          {"runner", plan.runner}};
}

}  // namespace tessera::composer
