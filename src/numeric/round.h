// Rounding to an element type: the one place that knows how a value looks after it is stored.
#pragma once

#include "numeric/dtype.h"

namespace tessera {

/// `value` after a store to `t` and a load, round to nearest even; overflow gives infinity as
/// PyTorch does (e4m3fn: NaN). Integers truncate towards zero; boolean is value != 0.
double round_to(DType t, double value);

}  // namespace tessera
