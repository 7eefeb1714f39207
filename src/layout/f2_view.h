// A layout, swizzled or not, as an affine map over F2: offset = matrix(index) XOR constant.
//
// It is one exactly when its extents are powers of two and the offsets of the indices 1, 2, 4, ...,
// each XOR the first offset, share no bits: then sums never carry and are XORs. Equality,
// injectivity and inverses of such maps cost the number of bits, not of elements.
#pragma once

#include "layout/f2_matrix.h"
#include "layout/swizzled_layout.h"

namespace tessera {

struct F2View {
  F2Matrix matrix;  // of the bits of the index, the first mode lowest, to those of the offset
  uint64_t constant = 0;

  [[nodiscard]] int64_t operator()(int64_t index) const {
    return static_cast<int64_t>(matrix(static_cast<uint64_t>(index)) ^ constant);
  }
  friend bool operator==(const F2View&, const F2View&) = default;
};

/// result(i) == l(i) for all i < size(l). Fails exactly when there is no such map.
Result<F2View> to_f2(const SwizzledLayout& l);

/// The coalesced layout and the offset with offset + layout(i) == v(i). Fails exactly when there is
/// none: columns share bits, or a stride would be negative.
Result<Slice> from_f2(const F2View& v);

/// The same under a swizzle: the one of the fewest bits, then of the lowest base, then of the
/// smallest shift. Fails when no single swizzle does.
Result<SwizzledLayout> from_f2_swizzled(const F2View& v);

}  // namespace tessera
