// Regions that look like attention and are none, with what stands in the way and what to do.
#pragma once

#include <vector>

#include "rules/rules.h"

namespace tessera::rules {

/// softmax(... Q K^T ...) V that the canonical form could not turn into one attention call.
std::vector<Rejection> near_attention(const graph::Graph& g);

}  // namespace tessera::rules
