// Lower bounds of sums, by replacing what is bounded by a term with that bound.
//
// In a sum with the part c * k, c < 0, and k < upper, the part is at least c * (upper - 1),
// whatever the other parts are: so a counter gives way to its symbolic bound, and k * 64 + 63 < K
// follows from k < K // 64. The same for what a memory holds, for a // b, a % b, min and max. A
// bound that is found is one; one that is not found may exist.
#pragma once

#include "term/sum.h"

namespace tessera::term {

/// True only if s >= bound for every admissible assignment.
bool proves_at_least(Pool& pool, const Sum& s, int64_t bound);
/// True only if s <= bound.
bool proves_at_most(Pool& pool, const Sum& s, int64_t bound);
/// True only if a <= b; a < b.
bool proves_less_equal(Pool& pool, const Sum& a, const Sum& b);
bool proves_less(Pool& pool, const Sum& a, const Sum& b);

}  // namespace tessera::term
