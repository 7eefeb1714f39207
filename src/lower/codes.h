// What the lowering cannot write. Each code is explained in src/diag/explain_lower.cpp.
#pragma once

#include "diag/diagnostic.h"

namespace tessera::lower {

inline constexpr Code unsupported{"TS0850", "lower.unsupported"};
inline constexpr Code unbounded{"TS0851", "lower.unbounded"};
inline constexpr Code bad_matrix{"TS0852", "lower.bad_matrix"};
inline constexpr Code bad_argument{"TS0853", "lower.bad_argument"};
inline constexpr Code bad_slice{"TS0854", "lower.bad_slice"};
inline constexpr Code bad_launch{"TS0855", "lower.bad_launch"};

}  // namespace tessera::lower
