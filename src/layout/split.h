// The split lemma: when the address of a part of a swizzled buffer is the part's base plus the
// swizzled offset within, swizzle(base + f) == base + swizzle(f).
//
// It lets a base that is known at run time only (a stage of a ring, a tile of a buffer) be taken
// out of a swizzle. Its condition is an alignment, for the 128-byte swizzle 1024 bytes.
#pragma once

#include "layout/swizzled_layout.h"

namespace tessera {

/// swizzle(base + f) == base + swizzle(f) for every base >= 0 that is a multiple of `divisor` and
/// every f >= 0. Holds exactly when the swizzle's period divides the divisor's largest power of
/// two, or the swizzle is the identity: with less, the swizzle moves some base. The error says
/// which. No bound on f is needed.
Status splits(const Swizzle& s, int64_t divisor);

/// swizzle(base + f(i)) == base + swizzle(f(i)) for one base >= 0 and all i < size(f). The error
/// has the first index at which it does not hold. Enumerates f, unless the period divides the base;
/// for more than 2^20 elements undecided, which is an error too.
Status splits(const Swizzle& s, int64_t base, const Layout& f);

}  // namespace tessera
