// Ops that move elements, or put a number in the place of some: where an element of the result
// comes from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace tessera::skeleton {

struct Moved {
  std::vector<std::string> at;  // the indices in the node's first tensor
  std::string condition;        // under which the element is taken; empty: always
  std::string otherwise = "0.0f";
};

/// For the element of the node's result at these indices; empty where the op is another one.
/// `shape`: of the first tensor.
std::optional<Moved> moved(const graph::Node& node, const std::vector<int64_t>& shape,
                           const std::vector<std::string>& at);

}  // namespace tessera::skeleton
