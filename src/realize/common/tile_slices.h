// A product whose k is cut into slices, by kernels/gemm_slices.py and kernels/gemm_slices_tf32.py:
// tiles and slices of the product, what the sum over the slices takes, and both as one candidate.
#pragma once

#include <string>
#include <vector>

#include "realize/common/tile_gemm_config.h"
#include "realize/realize.h"

#include "core/kernel.h"

namespace tessera::realize {

struct TileSlices {
  int rows = 128;                    // of a tile of the product
  int warpgroup_rows = 64;           // of them each consumer warpgroup makes: 64 or 128
  int columns = 128;                 // of a tile
  int cluster_m = 1, cluster_n = 1;  // blocks one above the other, or side by side: at most two
  int stages = 0;
  /// The product is stated as C^T = B A^T: of few rows, tiles have the columns as theirs, 64 and
  /// more of them; and a B that wgmma cannot read comes through registers as A.
  bool turned = false;
  bool spread = false;          // slices take slots by turns, instead of runs of slots
  std::vector<int64_t> counts;  // of slices: those to try, the best prediction first

  /// The longer extent of the result, the shorter one and the number of slices are below these:
  /// their tiles are counted in 32 bits (kernels/gemm_slices.py).
  static constexpr int64_t longer_below = 1 << 17, shorter_below = 1 << 13, slices_below = 1 << 10;

  [[nodiscard]] Json to_json(const GemmProblem& p, const arch::Arch& arch) const;
};

/// The product as its kernel states it.
GemmProblem tile_slices_product(const TileSlices& c, const GemmProblem& p);

struct TileSlicesSpace {
  std::vector<std::pair<TileSlices, double>> configs;  // with predicted ms, in no order
  std::map<std::string, int> pruned;
};
/// Of a result that lies by rows. None of products that fill the machine in one piece, of batches,
/// of parts and pairs, of 8-bit operands, and at the accuracy of float32.
TileSlicesSpace tile_slices_configs(const GemmProblem& p, const arch::Arch& arch);

/// Both kernels, verified: the product's sums of slices, and their sum with the epilogue.
struct TileSlicesKernels {
  core::Kernel partial, reduce;
};
Result<TileSlicesKernels> tile_slices_kernels(const GemmProblem& p, const TileSlices& c,
                                              const arch::Arch& arch);

/// What it is called and what it is expected to take, without a source.
Candidate tile_slices_sketch(const GemmProblem& p, const TileSlices& c, double ms,
                             const arch::Arch& arch);
/// The source of both kernels, with a launch for each number of slices.
Status write_tile_slices(Candidate& out, const GemmProblem& p, const TileSlices& c,
                         const arch::Arch& arch);

}  // namespace tessera::realize
