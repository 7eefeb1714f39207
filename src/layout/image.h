// What offsets a layout reaches: facts about its image, each decided exactly.
//
// Modes in the order of their strides decide most cases without looking at offsets. Modes that
// overlap ((4,3):(2,3) reaches 6 in two ways) are enumerated, and only those.
#pragma once

#include "layout/layout.h"

namespace tessera {

/// The number of distinct offsets. 1 <= image_size(l) <= min(size, cosize).
int64_t image_size(const Layout& l);

/// The largest n such that every offset of [0, n) is reached; at least 1.
int64_t covered_prefix(const Layout& l);

/// Every offset of [0, n) is reached.
bool is_surjective(const Layout& l, int64_t n);

/// Every offset of [0, size) is reached, each once. Then cosize == size.
bool is_bijective(const Layout& l);

}  // namespace tessera
