// Inverses of a layout, seen as the function from index to offset.
//
// A right inverse undoes on the side of offsets (at which index does offset i lie?), a left inverse
// on the side of indices (which index has this offset?). Of a bijective layout both are the same.
#pragma once

#include "layout/layout.h"

namespace tessera {

/// l(result(i)) == i for all i < size(result). When no two offsets of l coincide, modes of stride 0
/// aside, the result is the longest possible: its size is covered_prefix(l).
Layout right_inverse(const Layout& l);

/// result(l(i)) == i for all i < size(l). Fails when l is not injective, or when an interleaving
/// leaves no room: sorted by stride, each mode must end before the next stride, which must be a
/// multiple of its own stride. (2,2):(2,3) is refused for that.
Result<Layout> left_inverse(const Layout& l);

/// l(result(i)) == i and result(l(i)) == i for all i < size(l). Fails unless l is bijective.
Result<Layout> inverse(const Layout& l);

}  // namespace tessera
