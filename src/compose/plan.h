// The plan: what the composed module runs, in execution order.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "diag/result.h"
#include "graph/graph.h"
#include "rules/rules.h"

#include "kernel/winner.h"

namespace tessera::composer {

/// A chosen pattern with the kernel or call that runs it.
struct Placed {
  const rules::Pattern* pattern = nullptr;
  kernel::Winner winner;
  double eager_ms = 0;  // of the pattern's ops, one by one
};
/// A node of parameters alone, which runs once.
struct Prepack {
  graph::NodeId node;
};
/// A node that PyTorch runs.
struct Aten {
  graph::NodeId node;
};
using Step = std::variant<Placed, Prepack, Aten>;

/// An op that computes and that no kernel covers.
struct Leftover {
  graph::NodeId node;
  std::string reason;
};

/// The machine that a plan is for.
struct Target {
  std::string device_name;
  std::string arch;
  Json toolchain = Json::object();  // toolchain::Toolchain::to_json()
};

struct Plan {
  const graph::Graph* graph = nullptr;  // canonical; it and the patterns outlive the plan
  Target target;
  std::vector<Step> steps;
  std::vector<Leftover> leftover;
  std::string runner = "kernels";         // or who of PyTorch runs the module: eager, inductor
  std::string leftover_runner = "eager";  // who runs what no kernel covers
  /// "synthesized", "library", "mixed" or "none", of the kernels placed and the ops left to
  /// PyTorch, which runs its vendor's.
  [[nodiscard]] std::string_view kind() const;
  [[nodiscard]] bool runs_kernels() const { return runner == "kernels"; }
};

/// The inputs of a placed pattern, by their places, that need not be computed: its kernel does not
/// look at them, and they are made of numbers alone, so that what is known of them cannot change.
std::vector<int> spared_inputs(const graph::Graph& g, const Placed& placed);

/// Those of the placed, by their places, that nothing needs that runs: what they make was for
/// inputs that are spared.
Result<std::vector<int>> unneeded(const graph::Graph& g, const std::vector<Placed>& placed);

/// Works back from the module's outputs and mutations to what must run: kernels for the chosen
/// patterns, prepack steps, PyTorch for the rest. A view that only kernels read is not a step.
/// `why_left` gives the reason for an op that no chosen pattern covers (by node). An error is a
/// fault of ours: a set that `choose` accepted always has an order.
Result<Plan> make_plan(const graph::Graph& g, const std::vector<Placed>& placed,
                       const std::map<graph::NodeId, std::string>& why_left, Target target);

/// Schema tessera.plan/1 (docs/protocol.md); the Python edge reads it.
Json to_json(const Plan& plan);
/// Its field `leftover`.
Json leftover_json(const Plan& plan);

}  // namespace tessera::composer
