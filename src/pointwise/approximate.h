// Functions by the special function unit, for results that are rounded to few bits.
#pragma once

#include <string>

namespace tessera::pointwise {

/// Statements that emit() has made for CUDA, with the functions of
/// include/tessera_cutlass/functors.hpp where their error is far below the rounding of a result
/// with so many bits of mantissa: tsf_ up to 11 (float16), tsb_ up to 8 (bfloat16). Unchanged
/// above, but for `tanh_approx`, which is tsb_tanh for all results.
std::string approximated(std::string statements, int mantissa_bits);

}  // namespace tessera::pointwise
