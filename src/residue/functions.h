// Functions of single elements on residues.
//
// Sums, products, quotients and powers are what they are of real numbers, and so is what is made of
// them: sigmoid is 1 / (1 + 2^(-x log2 e)). Rounding is left out. Residues have an order, drawn at
// random, in which numbers keep theirs: the greatest of some values is one of them, the same one
// in whatever order they come. A function of which no law is known (erf, log, ...) is an unknown
// one: random, and the same for the same arguments. Equal expressions stay equal; of those that are
// equal by another law (log(x y) = log x + log y) it is not seen.
#pragma once

#include <span>
#include <vector>

#include "pointwise/pointwise.h"
#include "residue/value.h"

namespace tessera::residue {

/// A constant of a kernel or of a meaning: the nearest float32, as the machine has it.
Value constant(double n);

/// Where the value stands in the order: of a number itself.
double rank(const Value& v);
Value least(const Value& a, const Value& b);
Value greatest(const Value& a, const Value& b);

Value result_of(const pointwise::Function& f, std::span<const Value> arguments);
/// The results for these operand values.
std::vector<Value> evaluate(const pointwise::Dag& dag, std::span<const Value> operands);

}  // namespace tessera::residue
