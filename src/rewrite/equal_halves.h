// Tables whose last dim holds one half twice, as rotary embedding makes its cosines and sines.
#pragma once

#include "rewrite/rewrite.h"

namespace tessera::rewrite {

/// The fact's name in Value::facts: element i of the last dim, which is even, equals element i plus
/// half of it.
inline constexpr const char* halves_equal = "halves_equal";

/// States it of every value of which it follows: a concatenation of one value with itself, and what
/// views of whole rows, conversions and pointwise ops make of such values.
void mark_equal_halves(Graph& g);

}  // namespace tessera::rewrite
