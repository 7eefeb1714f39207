// Elements as bytes, little end first, as memory and registers hold them.
#pragma once

#include <cstdint>

#include "numeric/dtype.h"

namespace tessera::simulate {

/// The value that size_of(t) bytes at `bytes` hold.
double decode(DType t, const uint8_t* bytes);
/// Writes the value, rounded to the type, to size_of(t) bytes. Integers outside of their type's
/// range wrap; NaN becomes one quiet NaN.
void encode(DType t, double value, uint8_t* bytes);

}  // namespace tessera::simulate
