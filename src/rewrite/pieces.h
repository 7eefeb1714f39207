// Where a region changes from one formula to another: at the bounds of clamps, where comparisons
// turn.
//
// A composition of analytic functions is known by its values at random points (identity theorem).
// One with pieces is known if every piece is sampled, so the bounds of the pieces have to be known,
// and what lies at them. A clamp of a normalized value, say, has bounds that samples may never
// reach.
#pragma once

#include <optional>
#include <vector>

#include "rewrite/row_region.h"

namespace tessera::rewrite {

/// The values of an element of x at which the region changes its formula; nullopt where that
/// depends on something else than a multiple of the element plus a number, or pieces are without
/// end
/// (`floor`). Infinities and NaN are no bounds: special_rows.h has them.
std::optional<std::vector<double>> pieces_of(const Graph& g, const RowRegion& r);

/// The bounds, their neighbours in the type, and some numbers of every piece.
Row numbers_about(const std::vector<double>& bounds, DType type);

}  // namespace tessera::rewrite
