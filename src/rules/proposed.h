// Patterns that no rule knows: subgraphs that a person or an agent proposes. The graph says whether
// one is legal; what is legal is a pattern like any other, whose meaning is its ATen nodes.
//
// Its body is the subgraph in a form without names, the same in every module that has it: nodes in
// an order that follows from its results, tensors by number, types with shapes and strides. So its
// signature is the registry's key, and finding a stored one again is finding the same text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rules/common/flow.h"
#include "rules/rules.h"

namespace tessera::rules {

/// The rule's name of patterns that were proposed.
inline constexpr std::string_view proposed_rule = "proposed";

struct Proposal {
  std::string name;                // for people; of what it is
  std::vector<std::string> nodes;  // of the canonical graph, or of the traced one
  std::string rationale;
};

/// {"proposals": [{"name", "nodes": [...], "rationale"}]}, or that list alone. Error TS0238.
Result<std::vector<Proposal>> proposals_from_json(const Json& j);

/// {"inputs": [type], "nodes": [{"op", "arguments", "outputs": [type]}], "outputs": ["n3.0"]}; a
/// type is {"dtype", "shape", "strides"}, a tensor {"value": "i0"} or {"value": "n2.0"}.
struct ProposedBody : PatternBody {
  Json subgraph;
  [[nodiscard]] Json to_json() const override { return subgraph; }
};

/// The pattern of a proposal, or why there is none: TS0230 no such node, TS0231 not convex, TS0232
/// effects, TS0233 random numbers, TS0234 several devices, TS0235 nothing that computes, TS0236 an
/// op that is not ATen's, TS0237 results in memory of others.
Result<Pattern> propose(const Flow& flow, const Proposal& proposal);

/// The same of these computing nodes. `what`: the proposal's name.
Result<Pattern> propose(const Flow& flow, const NodeSet& set, const std::string& what);

/// `discover` of rules.h, with what was proposed before ({"name", "subgraph"}, as the registry
/// keeps it) as patterns beside those of the rules.
Discovery discover(const graph::Graph& g, const arch::Arch& arch,
                   const std::vector<Json>& proposed);

/// All places of a stored subgraph (ProposedBody::subgraph) in a graph, as patterns of its
/// signature.
/// {"name", "subgraph"}, as the registry keeps it.
std::vector<Pattern> find_proposed(const Flow& flow, const Json& stored);

}  // namespace tessera::rules
