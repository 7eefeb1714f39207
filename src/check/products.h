// The products of a kernel, by the role that multiplies and by their accumulators.
#pragma once

#include <string>
#include <vector>

#include "check/operand.h"
#include "check/place.h"

namespace tessera::check {

/// Those that sum into one set of accumulators, in the order of the text.
using Products = std::vector<Place>;

/// Adds a product to those of its role that have the same accumulators; the answer is what could
/// not be decided. Products of one role come one after the other.
std::string add_product(const Place& p, std::vector<std::vector<Products>>& roles);

/// Whether two operands begin at the same row and batch of their tensor.
bool same_corner(const Operand& x, const Operand& y);

}  // namespace tessera::check
