// Whether turns and blocks take every tile of the output once.
#pragma once

#include <vector>

#include "check/means.h"

namespace tessera::check {

/// The corner of the tile that a block has in a turn, and the turns in which a role makes it.
struct Raster {
  term::Term row, column;
  term::Term batch;                  // null: the output has none
  int64_t rows = 0, columns = 0;     // of a tile
  const core::For* turn = nullptr;   // null: a block has one tile, and no loop
  std::vector<bool> taken = {true};  // by turn: from `steady` on they repeat
  int64_t steady = 0;
  [[nodiscard]] bool takes(int64_t turn) const;
};

struct Covering {
  enum class Verdict : uint8_t { proved, refuted, unknown } verdict = Verdict::unknown;
  std::string message, found;  // of refuted; `found`: of unknown, why
};

/// Of one raster a role, all with as many `taken` and one `steady`. Proved where exactly one role
/// takes each turn, all have the same corners in it, the tile number t is the turn's item of a deal
/// of all tiles (core/deal.h), and the corner is one of these of t, which take each tile once for
/// all extents:
///   rows of tiles one after the other; columns one after the other;
///   bands of n rows of tiles, column by column in a band, the last band with the rows that remain.
/// In the last, a band of n rows has n * columns numbers, so t // (n * columns) is the band, and
/// within it rest % rows and rest // rows tell the tile.
///
/// With batches, t // (rows * columns) is the batch, and the rest is the tile's number in it. In
/// clusters the same holds of clusters in the place of blocks, whose tiles are as many times as
/// high, or as wide, as a cluster has blocks; a block has the part of its rank.
///
/// Without a loop, the block's number is the tile's, and there are as many blocks as tiles.
Covering covering(const core::Kernel& kernel, const std::vector<Raster>& roles,
                  const ElementAt& to);

}  // namespace tessera::check
