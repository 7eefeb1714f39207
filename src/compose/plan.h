// The plan: chosen kernels and left-over ops in an order that executes, as JSON (docs/protocol.md,
// tessera.plan/1).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "diag/result.h"
#include "graph/graph.h"
#include "rules/rules.h"

namespace tessera::composer {

/// A chosen pattern with what runs it, as the wire form of a candidate and its evidence.
struct Placed {
  const rules::Pattern* pattern = nullptr;
  Json candidate = Json::object();
  Json evidence = Json::object();
};

/// Works back from the module's outputs and mutations to what must run: kernels for the chosen
/// patterns, prepack steps, PyTorch for the rest. A view that only kernels read is not a step.
/// `why_left` gives the reason for an op that no chosen pattern covers (by node). An error is a
/// fault of ours: a set that `choose` accepted always has an order.
Result<Json> make_plan(const graph::Graph& g, const std::vector<Placed>& placed,
                       const std::map<graph::NodeId, std::string>& why_left, const Json& about);

}  // namespace tessera::composer
