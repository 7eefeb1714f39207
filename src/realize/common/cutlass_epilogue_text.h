// The epilogue's part of a generated product: its functors, its visitor and the visitor's
// arguments.
#pragma once

#include "realize/common/cutlass_text.h"

namespace tessera::realize {

using Values = std::vector<std::pair<std::string, std::string>>;

std::string layout_name(bool row_major);
/// `Fused`, `Fused1`, ...: what belongs to the first and to further results.
std::string result_name(std::string_view prefix, std::size_t which);

/// The statements with the functions that an element type of 16 bits or less allows: tsf_ are good
/// for 11 bits of mantissa, tsb_ for 8.
std::string approximated(std::string statements, DType element);

/// Where the outer strides of A, B, D and the source operand stand among a product's integers,
/// behind the number of inner batches.
int first_outer(const GemmProblem& p);

/// Adds the places of the template that depend on the epilogue's operands and results.
/// `pointers`: the source operand's batches are an array of pointers.
void fill_epilogue(const GemmProblem& p, bool pointers, int first_int, Values& values);

}  // namespace tessera::realize
