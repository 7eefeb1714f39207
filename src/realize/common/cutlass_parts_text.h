// Parts of a product's columns in a generated product: a struct for each part that has something to
// compute, their integers and the epilogue's arguments (tessera_cutlass/turned.h).
#pragma once

#include "realize/common/cutlass_epilogue_text.h"

namespace tessera::realize {

/// The names of the integers that the parts read, in order, with a prefix; and their values. A part
/// whose values are its accumulators has none.
std::vector<std::string> part_ints(const GemmProblem& p, std::string_view prefix);
std::vector<int64_t> part_values(const GemmProblem& p);

/// Puts the parts' structs behind the functors and fills the places of the epilogue's type and
/// arguments; without parts the epilogue is the built one.
void fill_parts(const GemmProblem& p, int first_int, Values& values);

}  // namespace tessera::realize
