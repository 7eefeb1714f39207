// Whether blocks take every tile of queries of every batch once.
#pragma once

#include "check/attend_products.h"

namespace tessera::check {

/// Proved where the block's number is ((b * H) + h) * tiles + m, for the output's batches in any
/// order, the tile's number m or its contrary, and the grid has just these. Else told to the
/// products, as output_once.
void tiles_once(const core::Kernel& kernel, AttendProducts& products, const Attention& means);

}  // namespace tessera::check
