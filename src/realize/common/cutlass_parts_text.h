// Parts of a product's columns in a generated product: a struct for each part that has something to
// compute, their integers and the epilogue's arguments (tessera_cutlass/turned.h).
#pragma once

#include "realize/common/cutlass_epilogue_text.h"

namespace tessera::realize {

/// The parts that have something to compute: others' values are their accumulators.
std::vector<const Part*> computed_parts(const GemmProblem& p);
/// Every group of a tile reads the same elements.
bool same_for_groups(const Part& part, const PartOperand& x);
/// The operand through whose pointer operand i is read: an earlier one's, whose right half it is,
/// or its own.
std::size_t read_through(const Part& part, std::size_t i);

/// The names of the integers that the parts read, in order, with a prefix; and their values:
/// first and end of a part, then five for each operand that is read through its own pointer.
std::vector<std::string> part_ints(const GemmProblem& p, std::string_view prefix);
std::vector<int64_t> part_values(const GemmProblem& p);

/// Puts the parts' structs behind the functors and fills the places of the epilogue's type and
/// arguments; without parts the epilogue is the built one.
void fill_parts(const GemmProblem& p, int first_int, Values& values);

}  // namespace tessera::realize
