// Reductions as the pointwise rule reads them: the reduced dims moved to the end.
#pragma once

#include <string>

#include "rules/common/expression.h"

namespace tessera::rules {

struct Reduction {
  ValueId result;
  std::string kind;        // "sum", "mean", "amax", "amin", "prod"
  graph::Operand operand;  // [kept..., reduced...]
  int64_t kept_elements = 1;
};

/// aten.sum, mean, amax, amin, prod over any dims; aten.max and aten.min over all. The error says
/// why not.
Result<Reduction> find_reduction(const Flow& flow, NodeId n);

}  // namespace tessera::rules
