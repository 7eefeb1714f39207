// Pointwise ATen nodes as nodes of a DAG of pointwise functions.
#pragma once

#include <utility>
#include <vector>

#include "diag/result.h"
#include "graph/graph.h"

#include "pointwise/pointwise.h"

namespace tessera::graph {

/// How a pointwise ATen node becomes DAG nodes (handles alpha=, scalars, approximate=, clamp
/// bounds, ...): given the DAG indices of its tensor arguments, appends and returns the index of
/// its result; an error when the form is unsupported.
Result<int> append_pointwise(pointwise::Dag& dag, const Graph& g, const Node& node,
                             const std::vector<std::pair<ValueId, int>>& tensor_arguments);

}  // namespace tessera::graph
