// Regions that look like a pattern and are none, with what stands in the way and what to do.
#pragma once

#include <string>
#include <vector>

#include "rules/common/flow.h"

namespace tessera::rules {

/// softmax(... Q K^T ...) V that the canonical form could not turn into one attention call.
std::vector<Rejection> near_attention(const Flow& flow);

/// What the user can do about an op that no rule takes; empty when there is nothing to say.
std::string advice_for(const graph::Node& node);

}  // namespace tessera::rules
