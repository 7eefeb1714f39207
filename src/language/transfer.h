// What moves between memory and tiles in registers has in common: which elements a thread's slots
// are, and in which vectors they go.
#pragma once

#include "language/elaborator.h"

namespace tessera::language {

/// Slots in vectors of n: neighbours along the last dimension, from a multiple of n on.
bool has_vectors(const Layout& layout, const std::vector<int64_t>& tile, int64_t n);

/// Where slot `slot` of the thread that executes lies in the tile: an index a dimension, null for
/// 0.
std::vector<Term> inside(Elaborator& e, const std::vector<int64_t>& tile, const Layout& layout,
                         Term slot);

/// Of a call with `box` and `like`, how a box of this shape lies beside registers that it goes
/// together with: as they do, with one element along the dimensions where the box has one.
Result<Layout> layout_beside(Call& c, const std::vector<int64_t>& tile);

/// Whether elements of a matrix in shared memory lie side by side along its second dimension; else
/// they do along its first.
bool last_is_contiguous(const core::Shared& s, const SharedRef& box);

/// `load` and `store` where `box` is shared memory.
Result<Value> load_shared(Call& c);
Result<Value> store_shared(Call& c);

}  // namespace tessera::language
