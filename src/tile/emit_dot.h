// The CUDA text of a product by a matrix instruction.
#pragma once

#include "tile/emit.h"

namespace tessera::tile {

/// The plan of a dot op: layouts against instruction (dot_plan.h).
struct DotPlan;
Result<DotPlan> plan_of(const Kernel& k, const Op& dot);

Status emit_product(Emitter& e, const Op& dot);

}  // namespace tessera::tile
