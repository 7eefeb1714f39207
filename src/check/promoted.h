// Sums of sums: accumulators that begin anew in some turns of the loop over k, and registers that
// get what the accumulators had summed before.
//
// The first product of a turn overwrites where O(k) holds. Ahead of a turn's products the
// accumulators are added to `total` where P(k) holds. Say that O holds in the first turn, and that
// P is O in all others and false in the first. Then at the end of each turn the accumulators have
// the products since the last turn where O held, and `total` has got those before it, each once. So
// behind the loop `total` is what it was before, plus the whole sum, less what the accumulators
// have.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "check/place.h"

namespace tessera::check {

/// Where the sum of an accumulator goes.
struct Promotion {
  core::RegistersId total;
  int64_t off = 0;  // its slot of the total, less the accumulator's slot
};

/// What is known of the accumulators of a product.
struct Promoted {
  /// Nothing, with neither a reason nor a fault: they are added to no registers.
  std::optional<Promotion> to;
  std::string why;  // what could not be decided
  /// What contradicts the law, or empty; `found` is a launch where it does.
  std::string fault, expected, found;
  const core::Op* addition = nullptr;
};

/// Of the first product of a turn, which stands in `loop`, the innermost of its loops, without
/// conditions. `all` are the kernel's places.
Promoted promoted(const core::Kernel& kernel, const std::vector<Place>& all, const Place& product,
                  const core::For& loop);

}  // namespace tessera::check
