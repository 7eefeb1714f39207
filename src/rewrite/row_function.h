// Which function that PyTorch has an op for a region computes: it is evaluated on sample rows and
// compared. Two different compositions of analytic functions do not agree on random samples to 9
// digits, so this sees through every order of association, placement of casts and choice of
// reductions, and takes nothing that means something else (a standard deviation with Bessel's
// correction, eps outside the root). Where a region has pieces, each is sampled (pieces.h).
//
// Nor what means something else for some numbers only (special_rows.h): compared exactly at every
// magnitude, so that no number that is written is taken for nothing, and in the arithmetic of the
// type, where what is written has to overflow, underflow and give NaN where PyTorch's op does. A
// softmax that does not take away the row's largest element is left as it is written.
#pragma once

#include <optional>
#include <string>

#include "rewrite/rewrite.h"
#include "rewrite/row_region.h"

namespace tessera::rewrite {

struct RowFunction {
  std::string what;
  NewNode node;                  // its type is left to the caller
  bool one_plus_weight = false;  // the op takes the weight plus one
};

/// Of a region without a reduction: the activation that it is.
std::optional<RowFunction> activation_of(const Graph& g, const RowRegion& r);
/// Of a region with one: softmax, log-softmax, RMSNorm or LayerNorm.
std::optional<RowFunction> row_function_of(const Graph& g, const RowRegion& r);

}  // namespace tessera::rewrite
