// One argument of a node as tessera.graph/1 has it.
#pragma once

#include "graph/graph.h"

namespace tessera::graph {

/// Tensors by name: {"value": "x"}.
Json to_json(const Graph& g, const Argument& a);

}  // namespace tessera::graph
