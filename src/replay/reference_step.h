// How far results may be from what is meant.
#pragma once

#include "core/kernel.h"

namespace tessera::replay {

/// Twice the distance of neighbours near 1.
double step_of(DType t);

}  // namespace tessera::replay
