// Rows on which a function is told from every other: numbers of all magnitudes, what no number is,
// equal ones, one that stands out, and rows about the magnitude at which their squares overflow.
#pragma once

#include <vector>

#include "rewrite/row_region.h"

namespace tessera::rewrite {

/// `length` numbers of a normal distribution.
Row random_row(std::size_t length, double scale, double shift, unsigned seed);

/// Rows of values of the type, each of `length` different elements; `columns` is how many a row
/// has.
std::vector<Row> special_rows(DType type, std::size_t length, double columns);

/// The numbers that such rows are made of, in one: for functions of single elements.
Row special_numbers(DType type);

}  // namespace tessera::rewrite
