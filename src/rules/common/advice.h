// What the user can do about an op that no rule takes.
#pragma once

#include <string>

#include "graph/graph.h"

namespace tessera::rules {

/// Empty when there is nothing to say.
std::string advice_for(const graph::Node& node);

}  // namespace tessera::rules
