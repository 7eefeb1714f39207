// Neighbouring ops that no rule takes and that could be one kernel by hand: what `discover`
// suggests to propose.
#pragma once

#include <vector>

#include "rules/common/flow.h"

namespace tessera::rules {

/// Groups of two to 24 computing nodes, each in execution order and legal as a proposal
/// (`propose`). A group is made of `uncovered` nodes and of what stands directly beside them, where
/// they read one another's results and stay legal together, else of the former alone: a window is
/// worth a kernel together with the sum over it. Products, convolutions, attention and recurrent
/// layers are in none: a naive kernel for one of them loses against the library.
std::vector<std::vector<NodeId>> proposable(const Flow& flow, const std::vector<NodeId>& uncovered);

}  // namespace tessera::rules
