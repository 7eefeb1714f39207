#include "realize/common/tile_gemm_config.h"

#include <algorithm>

#include "base/integers.h"
#include "realize/common/split_model.h"
#include "realize/common/tile_parts_text.h"

namespace tessera::realize {
namespace {

constexpr int row_bytes = 128;  // of an operand's tile: one swizzle's width
constexpr int least_stages = 3;
constexpr int store_buffers = 2;  // a consumer warpgroup

/// What kernels/gemm_fp32.py makes: tiles of 128 rows.
TileGemmSpace split_configs(const GemmProblem& p, const arch::Arch& arch) {
  TileGemmSpace space;
  for (const int columns : {64, 96, 128})
    for (const int group : {4, 8, 16}) {
      TileGemmConfig c{.columns = columns,
                       .group = group,
                       .direct = true,
                       .promote = 128 / tile_gemm_depth(p),
                       .split = true};
      c.stages = tile_gemm_stages(c, p, arch.shared_memory_per_block);
      if (const auto reason = tile_gemm_refuses(c, p, arch)) {
        ++space.pruned[*reason];
        continue;
      }
      Sm90Config model = tile_gemm_model(c, p);
      model.mainloop = Mainloop::split_divided;
      // Tiles of rows side by side share B in the cache; which number is best is not known.
      const double other = group == 8 ? 1.0 : 1.01;
      space.configs.emplace_back(c, other * predict_split_ms(model, p, arch));
    }
  return space;
}

}  // namespace

bool tile_gemm_splits(const GemmProblem& p) {
  return p.precision == Precision::fp32 && p.a.dtype == DType::float32;
}

bool tile_gemm_through_registers(const GemmProblem& p) {
  return p.precision == Precision::tf32 && p.a.dtype == DType::float32 && !p.a.columns_contiguous;
}

std::optional<std::string> tile_gemm_refuses(const TileGemmConfig& c, const GemmProblem& p,
                                             const arch::Arch& arch) {
  // Addresses, counters, and the results of one part. Of two sets of accumulators each part is done
  // with when its results leave.
  const int beside = c.promote > 0 && p.leaves.empty() ? 40 : 60;
  if (c.accumulators() + tile_gemm_taken(c) + beside > tile_gemm_registers(c))
    return "more accumulators than a thread has registers for";
  if (c.stages < least_stages) return "shared memory: too few stages";
  if (auto reason = tile_refuses_parts(c, p)) return reason;
  const bool as_it_lies = c.split || c.through_registers;  // threads read what wgmma cannot
  if (!as_it_lies && !p.b.columns_contiguous && c.columns % 64 != 0)
    return "N-major weights come in blocks of 64";
  if (!p.b.columns_contiguous && c.cluster_m == 2 && c.columns % 128 != 0)
    return "two blocks share N-major weights in blocks of 64";
  if (c.through_registers && c.cluster_n > 1) return "blocks side by side would share columns of A";
  if (!p.a.columns_contiguous && c.cluster_n == 2 && c.rows % 128 != 0)
    return "two blocks share M-major rows in blocks of 64";
  const int64_t tiles_m = ceil_div(p.m, c.rows), tiles_n = ceil_div(p.n, c.columns);
  if (c.turns() > 1 && c.warpgroups() > 1) return "ping-pong tile for several warpgroups";
  if (c.turns() == 1 && c.warpgroup_rows == 128 && c.warpgroups() == 1)
    return "128 rows by one warpgroup, and none beside it";
  if (c.turns() > 1 && tiles_m * tiles_n * p.l <= arch.multiprocessors)
    return "one tile a block, and none to take by turns";
  if (c.cluster_m > tiles_m || c.cluster_n > tiles_n) return "cluster larger than the problem";
  if ((tiles_m % c.cluster_m != 0 && tiles_m < 8) || (tiles_n % c.cluster_n != 0 && tiles_n < 8))
    return "cluster leaves blocks idle";
  const int64_t covered = tiles_m * c.rows * tiles_n * c.columns;
  const int low = c.split ? 128 : 64, narrow = c.split ? 64 : 32;
  const bool smallest = (c.rows == low || tiles_m > 1) && (c.columns == narrow || tiles_n > 1);
  if (covered > 2 * p.m * p.n && !smallest) return "tile wastes half its work";
  return std::nullopt;
}

Json TileGemmConfig::to_json(const GemmProblem& p) const {
  Json j = {{"tile", {rows, columns, tile_gemm_depth(p)}},
            {"warpgroup_rows", warpgroup_rows},
            {"cluster", {cluster_m, cluster_n}},
            {"schedule", schedule == Schedule::pingpong ? "pingpong" : "cooperative"},
            {"epilogue", direct ? "registers" : "tma"},
            {"stages", stages},
            {"scheduler", "persistent"},
            {"group", group}};
  if (promote > 0) j["promote"] = promote;
  if (split) j["mainloop"] = "split_divided";
  if (through_registers) j["mainloop"] = "registers";
  return j;
}

int tile_gemm_taken(const TileGemmConfig& c) {
  return c.through_registers ? 2 * c.warpgroup_rows * 16 / 128 : 0;
}

int tile_gemm_registers(const TileGemmConfig& c) {
  constexpr int all = 65536;
  // A warpgroup starts TMA, and another may take B apart.
  constexpr int starter = 40;
  const int producers = c.split ? 256 : 128;
  const int producer = c.split ? (starter + tile_gemm_divider) / 2 : starter;
  const int consumers = c.turns() * c.warpgroups() * 128, threads = consumers + producers;
  const int launch = std::min(all / threads / 8 * 8, 256);
  return std::min((launch * threads - producers * producer) / consumers / 8 * 8, 256);
}

int tile_gemm_depth(const GemmProblem& p) {
  return row_bytes / size_of(p.a.dtype);
}

double tile_gemm_sum_error(const TileGemmConfig& c, const GemmProblem& p) {
  if (size_of(p.a.dtype) > 1) return 0;
  // Computed element by element with 13 bits, K = 4096 is off by 0.066 (measured 0.066 too), 512 by
  // 0.005, 256 by 0.002: a 2^16th for each element of k at most.
  const int64_t summed = c.promote > 0 ? int64_t{c.promote} * tile_gemm_depth(p) : p.k;
  return static_cast<double>(std::min<int64_t>(summed, p.k)) / 65536;
}

bool tile_gemm_inexact(const TileGemmConfig& c, const GemmProblem& p) {
  // Half an ulp of bfloat16: what the budget permits beside the baseline's own error.
  return tile_gemm_sum_error(c, p) > 1.0 / 256;
}

int tile_gemm_part(const TileGemmConfig& c, const GemmProblem& p) {
  // The buffers of two roles take a stage of the widest tiles, which have few. A buffer's row is at
  // most what a swizzle takes: 128 bytes.
  const bool wide_results = size_of(p.outputs.front().dtype) > 2;
  if ((c.turns() > 1 && c.columns == 256) || (wide_results && !c.direct)) return 32;
  return c.columns % 64 == 0 ? 64 : 32;
}

int tile_gemm_stages(const TileGemmConfig& c, const GemmProblem& p, int64_t shared_bytes) {
  constexpr int64_t barriers = 1024;  // with what alignment takes
  // The proof of two roles has four times as many states, and they grow with the square.
  const int64_t most = c.turns() > 1 ? 8 : 12;
  const int64_t stores = c.direct ? 0
                                  : int64_t{store_buffers} * c.turns() * c.warpgroups() * 64 *
                                        tile_gemm_part(c, p) * size_of(p.outputs.front().dtype);
  // Both parts of B have places beside it.
  const int64_t stage = int64_t{row_bytes} * (c.rows + (c.split ? 3 : 1) * c.columns);
  return static_cast<int>(std::min((shared_bytes - stores - barriers) / stage, most));
}

bool tile_gemm_stores_by_tma(const GemmProblem& p) {
  const int64_t bytes = size_of(p.outputs.front().dtype);
  return (bytes == 2 || bytes == 4) && p.outputs.front().aligned();
}

Sm90Config tile_gemm_model(const TileGemmConfig& c, const GemmProblem& p) {
  Sm90Config m;
  m.tile_m = c.rows;
  m.tile_n = c.columns;
  m.tile_k = tile_gemm_depth(p);
  m.cluster_m = c.cluster_m;
  m.cluster_n = c.cluster_n;
  m.schedule = c.schedule;
  return m;
}

TileGemmSpace tile_gemm_configs(const GemmProblem& p, const arch::Arch& arch) {
  if (tile_gemm_splits(p)) return split_configs(p, arch);
  TileGemmSpace space;
  // What the additions take of a slot's time, where another warpgroup multiplies meanwhile and
  // where the tensor cores stand still: guesses.
  const auto with_additions = [](const TileGemmConfig& c, double ms) {
    const double share = c.turns() == 1 && c.warpgroups() > 1 ? 0.06 : 0.4;
    return c.promote > 0 ? ms * (1 + share / c.promote) : ms;
  };
  const auto offer = [&](TileGemmConfig c, bool direct, double share) {
    c.direct = direct;
    c.stages = tile_gemm_stages(c, p, arch.shared_memory_per_block);
    if (const auto reason = tile_gemm_refuses(c, p, arch)) {
      ++space.pruned[*reason];
      return 0;
    }
    const double ms = with_additions(c, predict_ms(tile_gemm_model(c, p), p, arch));
    space.configs.emplace_back(c, share * ms);
    return c.stages;
  };
  const auto consider = [&](TileGemmConfig c) {
    c.through_registers = tile_gemm_through_registers(p);
    // Of operands that come through registers TMA stores results of 32 bits alone.
    const bool direct = !tile_gemm_stores_by_tma(p) ||
                        (c.through_registers && size_of(p.outputs.front().dtype) != 4);
    const int stages = offer(c, direct, 1);
    // Buffers for results of 32 bits may take a slot of the ring. Whether whole lines are worth it
    // is measured; that they are is the guess.
    constexpr double parts_of_lines = 1.02;
    TileGemmConfig twin = c;
    twin.direct = true;
    if (!direct && size_of(p.outputs.front().dtype) == 4 &&
        tile_gemm_stages(twin, p, arch.shared_memory_per_block) > stages)
      offer(c, true, parts_of_lines);
  };
  // Slots of 128 elements of 8 bits. Sums of k that are as short as that need no promotion.
  const bool long_sums = tile_gemm_inexact({}, p);
  for (const int rows : {64, 128, 192, 256})
    for (const int columns : {32, 64, 96, 128, 160, 192, 224, 256})
      for (const auto& [cm, cn] : {std::pair{1, 1}, {2, 1}, {1, 2}})
        for (const Schedule schedule : {Schedule::cooperative, Schedule::pingpong})
          for (const int high : {64, 128})
            for (const int promote : {0, 1, 2})
              if (rows % high == 0 && (promote == 0 || long_sums))
                consider({.rows = rows,
                          .warpgroup_rows = high,
                          .columns = columns,
                          .cluster_m = cm,
                          .cluster_n = cn,
                          .schedule = schedule,
                          .promote = promote});
  return space;
}

}  // namespace tessera::realize
