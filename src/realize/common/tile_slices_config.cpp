#include <algorithm>
#include <cmath>
#include <set>

#include "base/integers.h"
#include "realize/common/tile_slices.h"

namespace tessera::realize {
namespace {

constexpr int row_bytes = 128;  // of an operand's tile: one swizzle's width
constexpr double ghz = 1.45;

TileGemmConfig as_gemm(const TileSlices& c, const GemmProblem& q) {
  return {.rows = c.rows,
          .warpgroup_rows = c.warpgroup_rows,
          .columns = c.columns,
          .cluster_m = c.cluster_m,
          .cluster_n = c.cluster_n,
          .direct = true,
          .through_registers = tile_gemm_through_registers(q)};
}

std::optional<std::string> refuse(const TileSlices& c, const GemmProblem& q) {
  constexpr int least_stages = 3, beside = 60;
  const TileGemmConfig gemm = as_gemm(c, q);
  if (gemm.accumulators() + tile_gemm_taken(gemm) + beside > tile_gemm_registers(gemm))
    return "more accumulators than a thread has registers for";
  if (c.stages < least_stages) return "shared memory: too few stages";
  if (c.warpgroup_rows == 128 && c.rows == 128)
    return "128 rows by one warpgroup, and none beside it";
  if (!q.b.columns_contiguous && c.columns % 64 != 0) return "N-major weights come in blocks of 64";
  if (!q.b.columns_contiguous && c.cluster_m == 2 && c.columns % 128 != 0)
    return "two blocks share N-major weights in blocks of 64";
  if (gemm.through_registers && c.cluster_n > 1)
    return "blocks side by side would share columns of A";
  if (!q.a.columns_contiguous && c.cluster_n == 2 && c.rows % 128 != 0)
    return "two blocks share M-major rows in blocks of 64";
  const int64_t tiles_m = ceil_div(q.m, c.rows), tiles_n = ceil_div(q.n, c.columns);
  if (tiles_m % c.cluster_m != 0 || tiles_n % c.cluster_n != 0) return "cluster leaves blocks idle";
  const int64_t covered = tiles_m * c.rows * tiles_n * c.columns;
  const bool smallest = (c.rows == 64 || tiles_m > 1) && (c.columns == 16 || tiles_n > 1);
  if (covered >= 2 * q.m * q.n && !smallest) return "tile wastes half its work";
  return std::nullopt;
}

/// Slices that fill whole waves of the machine, or nearly, and powers of two.
std::vector<int64_t> counts_of(const TileSlices& c, const GemmProblem& q, const arch::Arch& arch) {
  constexpr int64_t waves = 2, least_turns = 4;
  const int64_t tiles = ceil_div(q.m, c.rows) * ceil_div(q.n, c.columns);
  const int64_t steps = ceil_div(q.k, tile_gemm_depth(q));
  std::set<int64_t> wished;
  for (int64_t w = 1; w <= waves; ++w) wished.insert(arch.multiprocessors * w / tiles);
  for (int64_t s = 2; s * tiles <= waves * arch.multiprocessors; s *= 2) wished.insert(s);
  std::set<int64_t> counts;
  for (const int64_t s : wished) {
    if (s < 2 || steps / s < least_turns) continue;
    counts.insert(ceil_div(steps, ceil_div(steps, s)));  // as few as have as many turns
  }
  return {counts.begin(), counts.end()};
}

/// What a block takes for a turn, in microseconds: the tensor cores, shared memory at 128 bytes a
/// clock, and the L2 cache, bounded by the bytes on their way too. Threads that load A meet in each
/// bank twice.
double turn_us(const TileSlices& c, const GemmProblem& q) {
  constexpr double products_per_clock = 2048, latency_us = 1.0, gbs_of_block = 45;
  const double bytes = row_bytes * (c.rows + c.columns);
  const double reads = tile_gemm_through_registers(q) ? 2 : 1;
  const double clocks =
      std::max(c.rows * c.columns * 64 / products_per_clock, reads * c.rows + c.columns);
  // Two blocks of a cluster read one of both operands once.
  const double read = row_bytes * (c.rows / (c.cluster_n > 1 ? 2.0 : 1.0) +
                                   c.columns / (c.cluster_m > 1 ? 2.0 : 1.0));
  const double gbs = std::min(gbs_of_block, c.stages * bytes / latency_us * 1e-3);
  return std::max(clocks / (ghz * 1e3), read * 1e-3 / gbs);
}

double predict(const TileSlices& c, const GemmProblem& q, int64_t slices, const arch::Arch& arch) {
  constexpr double fill_us = 2.5, second_launch_us = 2.0;
  const double tiles = static_cast<double>(ceil_div(q.m, c.rows) * ceil_div(q.n, c.columns));
  const double blocks = tiles * static_cast<double>(slices);
  const double waves = std::ceil(blocks / arch.multiprocessors);
  const auto turns = static_cast<double>(ceil_div(ceil_div(q.k, tile_gemm_depth(q)), slices));
  const double product = waves * turns * turn_us(c, q);
  const double least = q.bytes() * 1e-3 / arch.achievable_bandwidth_gbs;
  // Written once and read once.
  const double sums =
      static_cast<double>(slices * q.m * q.n) * 8e-3 / arch.achievable_bandwidth_gbs;
  return (std::max(product, least) + 0.15 * std::min(product, least) + fill_us + second_launch_us +
          sums) *
         1e-3;
}

void consider(TileSlices c, const GemmProblem& p, const arch::Arch& arch, TileSlicesSpace& space) {
  const GemmProblem q = tile_slices_product(c, p);
  c.stages = tile_gemm_stages(as_gemm(c, q), q, arch.shared_memory_per_block);
  if (const auto reason = refuse(c, q)) {
    ++space.pruned[*reason];
    return;
  }
  std::vector<std::pair<double, int64_t>> counts;
  for (const int64_t s : counts_of(c, q, arch)) counts.emplace_back(predict(c, q, s, arch), s);
  if (counts.empty()) {
    ++space.pruned["K too short for slices"];
    return;
  }
  std::sort(counts.begin(), counts.end());
  constexpr std::size_t most_counts = 3;
  for (std::size_t i = 0; i < std::min(counts.size(), most_counts); ++i)
    c.counts.push_back(counts[i].second);
  for (const bool spread : {false, true}) {
    c.spread = spread;
    // Which of both is faster depends on how rows lie in memory: both are tried.
    space.configs.emplace_back(c, counts.front().first * (spread ? 1.001 : 1));
  }
}

/// Whether products are stated so: of few rows turned, and of more as they are; but of elements of
/// 4 bytes B has to lie along k.
bool is_stated(bool turned, const GemmProblem& p) {
  constexpr int64_t few = 32, rather_few = 128;
  if (size_of(p.a.dtype) == 4) {
    const bool a_along_k = p.a.columns_contiguous, b_along_k = p.b.columns_contiguous;
    if (!a_along_k || !b_along_k) return turned ? a_along_k : b_along_k;
  }
  return turned ? p.m <= rather_few && p.m < p.n : p.m > few || p.m >= p.n;
}

}  // namespace

GemmProblem tile_slices_product(const TileSlices& c, const GemmProblem& p) {
  return c.turned ? exchange(p) : p;
}

TileSlicesSpace tile_slices_configs(const GemmProblem& p, const arch::Arch& arch) {
  TileSlicesSpace space;
  const int64_t blocks = ceil_div(p.m, 128) * ceil_div(p.n, 128);
  if (p.l != 1 || size_of(p.a.dtype) == 1 || blocks > arch.multiprocessors) return space;
  if (tile_gemm_splits(p)) return space;
  // Sums of slices meet what one column makes alone.
  if (!p.parts.empty() || p.paired()) return space;
  for (const bool turned : {false, true}) {
    if (!is_stated(turned, p)) continue;
    for (const int rows : {64, 128, 256})
      for (const int columns : {16, 32, 64, 96, 128, 192, 256})
        for (const auto& [cm, cn] : {std::pair{1, 1}, {2, 1}, {1, 2}})
          for (const int high : {64, 128})
            if (rows % high == 0 && (rows < 256 || high == 128))
              consider({.rows = rows,
                        .warpgroup_rows = high,
                        .columns = columns,
                        .cluster_m = cm,
                        .cluster_n = cn,
                        .turned = turned},
                       p, arch, space);
  }
  return space;
}

}  // namespace tessera::realize
