// Sums of the elements of a tensor, C[i, j] = f(sum(P[s, i, j], s)): which element is added to
// which sum, and where it is stored; for all sizes and lanes. No tensor cores take part. Or no sum
// is taken, and elements of the output are functions of elements.
#pragma once

#include "check/flow.h"

namespace tessera::check {

/// `runs` have been proved. One role of the kernel, or all its warps, loads, adds up and stores, in
/// a loop over tiles with one over the elements of a sum in it. Without a sum, in a loop over tiles
/// or, where a block has one tile, in none.
Flow add_up(const core::Kernel& kernel, const Runs& runs, const Means& means);

}  // namespace tessera::check
