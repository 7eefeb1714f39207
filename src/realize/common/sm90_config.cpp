#include "realize/common/sm90_config.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "base/integers.h"

namespace tessera::realize {
namespace {

// Tensor core multiply-adds of one SM in a clock, 16-bit operands (hopper.md 1.1); others scale by
// element size.
constexpr double mma_per_clock_16bit = 2048;
// Sustained clock of a power-limited dense GEMM on random data, GHz: 770 of 989 TFLOP/s at 1.83
// GHz.
constexpr double sustained_ghz = 1.45;
constexpr double shared_bytes_per_clock = 128;
// L2 to one SM when all read, bytes a clock (about 6150 for 132 SMs).
constexpr double l2_bytes_per_clock = 46;
// Stores of one SM when all write.
constexpr double store_bytes_per_clock = 16;
constexpr double fill_clocks =
    900;  // from a tile's start to its first wgmma, not overlapped at the first tile
constexpr double launch_overhead_ms = 0.004;
// Of the 240 registers that a thread of two consuming warpgroups has.
constexpr int most_accumulators = 160;
// Rows of one TMA box; a tile that a cluster shares is loaded in as many parts.
constexpr int most_box = 256;

/// A CTA tile is in one part and holds whole groups of it.
std::optional<std::string> refuse_parts(const Sm90Config& c, const GemmProblem& p) {
  if (c.scheduler == Scheduler::stream_k) return "stream-K of columns in parts";
  if (c.accumulator_registers() > 128)
    return "more than 128 accumulator registers a thread beside operands of parts";
  for (const Part& part : p.parts) {
    // wgmma gives a thread the same two columns of every 8.
    if (part.period % 16 != 0) return "half a group of columns is no multiple of 8";
    if (part.period > 0 && c.tile_n % part.period != 0) return "a tile cuts a group of columns";
    const bool open_end = part.plain && part.first + part.columns == p.n;
    if (part.first % c.tile_n != 0 || (!open_end && part.columns % c.tile_n != 0))
      return "a tile lies in two parts";
  }
  return std::nullopt;
}

std::optional<std::string> refuse(const Sm90Config& c, const GemmProblem& p, const Sm90Needs& needs,
                                  const arch::Arch& arch) {
  if (c.schedule == Schedule::cooperative && c.tile_m < 128) return "cooperative needs 128 rows";
  if (c.schedule == Schedule::cooperative && c.tile_m % 128 != 0)
    return "cooperative splits M by 2 warpgroups of 64";
  if (c.schedule == Schedule::pingpong && c.tile_m > 128) return "ping-pong tile above 128 rows";
  if (c.schedule == Schedule::pingpong && c.scheduler == Scheduler::stream_k)
    return "ping-pong forbids stream-K";
  if (c.accumulator_registers() > most_accumulators)
    return "more than 160 accumulator registers a thread";
  // The transposition through registers needs what a wider accumulator would take.
  if (c.accumulator_registers() > 128 && needs.a_in_registers)
    return "more than 128 accumulator registers a thread beside A in registers";
  if (c.tile_n > most_box * c.cluster_m || c.tile_m > most_box * c.cluster_n)
    return "TMA loads at most 256 rows at once";
  if (needs.element_bytes == 1 && !c.fast_accum && c.accumulator_registers() > 96)
    return "two accumulators of promoted fp8 above 96 registers each";
  // A ring of two cannot load while both warpgroups compute; a K tile of half the depth then does
  // the same better.
  if (mainloop_stages(c, needs, arch.shared_memory_per_block) < 3)
    return "shared memory: fewer than 3 stages";
  if (c.paired) {
    if (c.output_n() % 32 != 0) return "half of the columns is no multiple of 32";
    // TMA swizzles each weight's columns by itself: one box must fill whole rows of 128 bytes.
    if (!p.b.columns_contiguous && c.output_n() * needs.element_bytes % 128 != 0)
      return "half of the columns is no whole swizzle row of N-major weights";
    if (needs.a_in_registers) return "two products in one read A from shared memory";
    if (c.scheduler == Scheduler::stream_k) return "stream-K of two products in one";
  }
  if (c.parted) {
    if (auto reason = refuse_parts(c, p)) return reason;
  }
  if (needs.b_transposed && c.tile_n % (2 * c.tile_k) != 0)
    return "transposition of B needs pairs of square tiles";
  const int64_t tiles_m = ceil_div(p.m, c.tile_m);
  const int64_t tiles_n = ceil_div(p.n, c.output_n());
  if (c.cluster_m > tiles_m || c.cluster_n > tiles_n) return "cluster larger than the problem";
  if (tiles_m % c.cluster_m != 0 && tiles_m < 8) return "cluster leaves blocks idle";
  if (tiles_n % c.cluster_n != 0 && tiles_n < 8) return "cluster leaves blocks idle";
  const double covered = static_cast<double>(round_up(p.m, c.tile_m) * round_up(p.n, c.output_n()));
  const bool smallest = (c.tile_m == 64 || tiles_m > 1) && (c.output_n() <= 32 || tiles_n > 1);
  if (covered > 2.0 * static_cast<double>(p.m * p.n) && !smallest)
    return "tile wastes half its work";
  if (c.tile_k > p.k && c.tile_k * needs.element_bytes > 128) return "K tile above K";
  if (c.scheduler == Scheduler::stream_k) {
    const int64_t tiles = tiles_m * tiles_n * p.l;
    if (tiles >= int64_t{4} * arch.multiprocessors) return "stream-K with many waves";
    if (ceil_div(p.k, c.tile_k) < 16) return "stream-K with short K";
  }
  return std::nullopt;
}

std::string_view name_of(Schedule s) {
  return s == Schedule::cooperative ? "cooperative" : "pingpong";
}
std::string_view name_of(Scheduler s) {
  return s == Scheduler::persistent ? "persistent" : "stream_k";
}

/// Clocks of the mainloop for one tile.
double mainloop_clocks(const Sm90Config& c, const GemmProblem& p, const Sm90Needs& needs) {
  const double bytes = needs.element_bytes;
  const double k = static_cast<double>(round_up(p.k, c.tile_k));
  const double rate = mma_per_clock_16bit * 2.0 / bytes;
  const double mma = c.tile_m * c.tile_n * k / rate;
  // Every warpgroup's wgmma reads its own 64 rows of A and all of B.
  const double shared = (c.tile_m / 64.0) * (64 + c.tile_n) * k * bytes / shared_bytes_per_clock;
  const double l2 =
      (static_cast<double>(c.tile_m) / c.cluster_n + static_cast<double>(c.tile_n) / c.cluster_m) *
      k * bytes / l2_bytes_per_clock;
  double clocks = std::max({mma, shared, l2});
  // A through registers costs issue slots beside a short wgmma: nothing at 128 columns (256 x 128
  // is as fast as 128 x 256 on an H200); below, a guess.
  if (needs.a_in_registers && c.tile_n < 128) clocks *= 1.2;
  // One tile of 64 x 128 or less cannot keep the tensor core's pipeline full alone.
  if (c.tile_m * c.tile_n <= 64 * 128 && c.schedule == Schedule::cooperative) clocks *= 1.1;
  if (c.tile_k * needs.element_bytes > 128) clocks *= 1.02;
  return clocks;
}

double epilogue_clocks(const Sm90Config& c, const Sm90Needs& needs, const GemmProblem& p) {
  const double elements = static_cast<double>(c.tile_m) * c.output_n();
  const double moved = elements * (needs.output_bytes + needs.further_bytes + needs.source_bytes) /
                       store_bytes_per_clock;
  double calls = 0;
  for (const auto& node : p.epilogue.nodes) {
    if (node.kind == pointwise::Dag::Node::Kind::call) calls += node.arguments.size() > 1 ? 1 : 8;
  }
  // The operands of parts come from L2 before the first store, once for all groups of a tile.
  double read = 0;
  for (const Part& part : p.parts) {
    const double columns = part.period == 0 ? c.tile_n : static_cast<double>(part.period) / 2;
    const double share = static_cast<double>(part.columns) / static_cast<double>(p.n);
    for (const PartOperand& x : part.operands) {
      if (x.ld != 0 && x.along_columns)
        read += share * c.tile_m * columns * size_of(x.dtype) / l2_bytes_per_clock;
    }
  }
  return 300 + read + std::max(moved, elements * (4 + calls) / 128);
}

std::vector<Sm90Config> hierarchy(const GemmProblem& p) {
  const int k_tile = 128 / size_of(p.a.dtype);  // 128 bytes: one swizzle atom
  std::vector<Sm90Config> all;
  for (const int m : {64, 128, 192, 256})
    for (const int n : {16, 32, 64, 96, 128, 160, 192, 224, 256, 320})
      for (const int k : {k_tile, 2 * k_tile})
        for (const auto& [cm, cn] : {std::pair{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}})
          for (const Schedule s : {Schedule::cooperative, Schedule::pingpong})
            for (const Scheduler d : {Scheduler::persistent, Scheduler::stream_k}) {
              Sm90Config c{m, n, k, cm, cn, s, d, 0, false};
              c.paired = p.paired();
              c.parted = !p.parts.empty();
              all.push_back(c);
              if (size_of(p.a.dtype) == 1) {
                c.fast_accum = true;
                all.push_back(c);
              }
            }
  return all;
}

/// First the best of each tile and schedule whose prediction is near the best, then the rest: the
/// model is not exact enough to spend a small budget on variants of one tile.
void diversify(std::vector<std::pair<Sm90Config, double>>& configs) {
  if (configs.empty()) return;
  const double limit = 1.6 * configs.front().second;
  std::map<std::tuple<int, int, Schedule>, int> seen;
  const auto round = [&](const std::pair<Sm90Config, double>& e) {
    if (e.second > limit) return 100;
    return seen[{e.first.tile_m, e.first.tile_n, e.first.schedule}]++;
  };
  std::vector<std::pair<int, std::pair<Sm90Config, double>>> keyed;
  for (const auto& e : configs) keyed.emplace_back(round(e), e);
  std::stable_sort(keyed.begin(), keyed.end(), [](const auto& x, const auto& y) {
    // Round 0 and 1 interleave by prediction with a handicap of 12 % a round.
    return x.second.second * std::pow(1.12, std::min(x.first, 20)) <
           y.second.second * std::pow(1.12, std::min(y.first, 20));
  });
  for (std::size_t i = 0; i < keyed.size(); ++i) configs[i] = keyed[i].second;
}

/// Four where they cost the mainloop no stage: in a cooperative kernel the tensor cores stand still
/// while a warpgroup waits for a buffer (4096 x 4096 x 4096 bf16 on an H200: 0.5 % of the time).
/// Buffers shared with C, and those of further results, are laid out for two.
int store_buffers(const Sm90Config& c, const Sm90Needs& needs, const arch::Arch& arch) {
  constexpr int wanted = 4;
  const bool own_buffers = needs.source_bytes == 0 && needs.further_bytes == 0;
  if (c.schedule != Schedule::cooperative || !own_buffers) return 0;
  if (c.output_n() / 32 * (c.tile_m / 128) < wanted) return 0;
  Sm90Config more = c;
  more.store_buffers = wanted;
  const int64_t shared = arch.shared_memory_per_block;
  return mainloop_stages(more, needs, shared) == mainloop_stages(c, needs, shared) ? wanted : 0;
}

}  // namespace

Json Sm90Config::to_json() const {
  Json j = {{"tile", {tile_m, tile_n, tile_k}},
            {"cluster", {cluster_m, cluster_n}},
            {"schedule", name_of(schedule)},
            {"epilogue", "tma"},
            {"stages", stages},
            {"scheduler", name_of(scheduler)}};
  if (fast_accum) j["fast_accum"] = true;
  if (mainloop != Mainloop::stock) {
    j["mainloop"] = mainloop == Mainloop::split_packed ? "split_packed" : "split_inline";
  }
  if (epilogue_n > 0) j["epilogue_columns"] = epilogue_n;
  if (store_buffers > 0) j["store_buffers"] = store_buffers;
  if (paired) j["products"] = "paired";
  if (interleaved) j["slices"] = "interleaved";
  if (pointers) j["batches"] = "pointers";
  if (parted) j["columns"] = "parts";
  return j;
}

int Sm90Config::accumulator_registers() const {
  return tile_m * tile_n / (schedule == Schedule::cooperative ? 256 : 128);
}

int Sm90Config::output_n() const {
  return paired ? tile_n / 2 : tile_n;
}

Json Knobs::to_json() const {
  static constexpr const char* rasters[] = {"auto", "m", "n"};
  static constexpr const char* modes[] = {"heuristic", "data_parallel", "split_k", "stream_k"};
  Json j = {{"raster", rasters[raster]}, {"swizzle", swizzle}};
  if (splits != 1 || decomposition != 0) {
    j["splits"] = splits;
    j["decomposition"] = modes[decomposition];
  }
  return j;
}

Sm90Needs needs_of(const GemmProblem& p) {
  Sm90Needs n;
  n.element_bytes = size_of(p.a.dtype);
  n.output_bytes = size_of(p.outputs.front().dtype);
  for (std::size_t r = 1; r < p.outputs.size(); ++r) n.further_bytes += size_of(p.outputs[r].dtype);
  n.a_in_registers = n.element_bytes != 2 && !p.a.columns_contiguous;
  if (const int source = p.source_leaf(); source >= 0)
    n.source_bytes = size_of(p.leaves[static_cast<std::size_t>(source)].matrix.dtype);
  n.b_transposed = n.a_in_registers && !p.b.columns_contiguous;
  for (const Leaf& x : p.leaves) {
    if (x.kind == Leaf::Kind::row) n.row_vector_bytes += size_of(x.matrix.dtype);
  }
  return n;
}

bool wide_rows(const GemmProblem& p, const Sm90Config& c) {
  return c.mainloop == Mainloop::stock && !c.parted && size_of(p.a.dtype) == 4 &&
         needs_of(p).a_in_registers;
}

int64_t epilogue_bytes(const Sm90Config& c, const Sm90Needs& needs) {
  // Automatic epilogue tile: 128 x 32 (cooperative) or 64 x 32; two stages of D (or those asked
  // for), four of C, C's reused for D when both have one type.
  const int64_t rows = std::min(c.tile_m, c.schedule == Schedule::cooperative ? 128 : 64);
  const int64_t elements = rows * std::min(c.output_n(), 32);
  const int64_t subtiles = static_cast<int64_t>(c.tile_m) * c.output_n() / elements;
  const int64_t stages_d = std::min<int64_t>(subtiles, c.store_buffers > 0 ? c.store_buffers : 2);
  int64_t bytes = round_up(stages_d * elements * needs.output_bytes, 128);
  if (needs.source_bytes > 0) {
    int64_t stages_c = std::min<int64_t>(subtiles, 4);
    if (needs.source_bytes == needs.output_bytes) {
      stages_c = std::max(stages_c, stages_d + 1);
      bytes = 0;
    }
    bytes += round_up(stages_c * elements * needs.source_bytes, 128);
  }
  bytes += round_up(stages_d * elements * needs.further_bytes, 128);
  bytes += round_up(static_cast<int64_t>(needs.row_vector_bytes) * c.output_n(), 128);
  return bytes + 256;  // pipelines and load order barriers
}

int mainloop_stages(const Sm90Config& c, const Sm90Needs& needs, int64_t shared_bytes) {
  const int64_t stage =
      round_up(static_cast<int64_t>(c.tile_m + c.tile_n) * c.tile_k * needs.element_bytes, 128) +
      16;
  return static_cast<int>(std::min<int64_t>((shared_bytes - epilogue_bytes(c, needs)) / stage, 24));
}

double predict_ms(const Sm90Config& c, const GemmProblem& p, const arch::Arch& arch) {
  const Sm90Needs needs = needs_of(p);
  const int64_t tiles = ceil_div(round_up(p.m, int64_t{c.tile_m} * c.cluster_m), c.tile_m) *
                        ceil_div(round_up(p.n, int64_t{c.output_n()} * c.cluster_n), c.output_n()) *
                        p.l;
  const int cluster = c.cluster_m * c.cluster_n;
  // GPCs hold 16 or 18 SMs: clusters of 4 leave some idle.
  const double usable = cluster <= 2 ? arch.multiprocessors : arch.multiprocessors * 0.93;
  const double main = mainloop_clocks(c, p, needs);
  const double tail = epilogue_clocks(c, needs, p);
  double clocks = 0;
  if (c.scheduler == Scheduler::stream_k) {
    const double fixup = static_cast<double>(c.tile_m) * c.tile_n * 8 / store_bytes_per_clock;
    clocks = (main + tail) * static_cast<double>(tiles) / usable + fixup + 2000;
  } else {
    const double waves = std::ceil(static_cast<double>(tiles) / usable);
    // Ping-pong hides the epilogue of one tile behind the mainloop of the next, but for the last.
    clocks = c.schedule == Schedule::pingpong ? waves * std::max(main, tail) + std::min(main, tail)
                                              : waves * (main + tail);
  }
  const double compute = (clocks + fill_clocks) / (sustained_ghz * 1e6);
  const double memory = p.bytes() / (arch.achievable_bandwidth_gbs * 1e6);
  return std::max(compute, memory) + 0.15 * std::min(compute, memory) + launch_overhead_ms;
}

double l2_read_bytes(const Sm90Config& c, const GemmProblem& p) {
  const double tiles = static_cast<double>(ceil_div(p.m, c.tile_m)) *
                       static_cast<double>(ceil_div(p.n, c.output_n())) * static_cast<double>(p.l);
  const double rows =
      static_cast<double>(c.tile_m) / c.cluster_n + static_cast<double>(c.tile_n) / c.cluster_m;
  return tiles * rows * static_cast<double>(p.k) * size_of(p.a.dtype);
}

ConfigSpace sm90_configs(const GemmProblem& p, const arch::Arch& arch) {
  ConfigSpace space;
  const Sm90Needs needs = needs_of(p);
  for (Sm90Config c : hierarchy(p)) {
    if (const auto reason = refuse(c, p, needs, arch)) {
      ++space.pruned[*reason];
      continue;
    }
    c.store_buffers = store_buffers(c, needs, arch);
    space.configs.emplace_back(c, predict_ms(c, p, arch));
  }
  std::stable_sort(space.configs.begin(), space.configs.end(),
                   [](const auto& x, const auto& y) { return x.second < y.second; });
  diversify(space.configs);
  return space;
}

std::vector<Knobs> sm90_knobs(const Sm90Config& c, const GemmProblem& p, const arch::Arch& arch) {
  const int64_t tiles_m = ceil_div(p.m, c.tile_m);
  const int64_t tiles_n = ceil_div(p.n, c.output_n());
  const int64_t smaller = std::min(tiles_m, tiles_n);
  std::vector<Knobs> knobs;
  if (c.scheduler == Scheduler::stream_k) {
    const int64_t tiles = tiles_m * tiles_n * p.l;
    const int64_t fit = std::max<int64_t>(1, arch.multiprocessors / tiles);
    knobs.push_back({0, 1, 1, 0});
    knobs.push_back({0, 1, 1, 3});
    for (const int64_t s : {fit, fit / 2, fit * 2}) {
      if (s > 1 && p.k / s >= int64_t{8} * c.tile_k)
        knobs.push_back({0, 1, static_cast<int>(s), 2});
    }
    return knobs;
  }
  if (tiles_m * tiles_n * p.l <= arch.multiprocessors) return {{0, 1}, {1, 1}, {2, 1}};
  // CUTLASS rounds the tiles up to whole squares of `swizzle` clusters and computes those beyond
  // the result, too: 16 x 90 tiles in squares of 8 are 12 rounds of 132 instead of 11.
  const auto rounds = [&](int swizzle) {
    const int64_t tiles = round_up(tiles_m, int64_t{swizzle} * c.cluster_m) *
                          round_up(tiles_n, int64_t{swizzle} * c.cluster_n) * p.l;
    return ceil_div(tiles, arch.multiprocessors);
  };
  const int64_t least = rounds(1);
  for (const int swizzle : {8, 4, 2, 1}) {
    // CUTLASS' own rule: 8 from 6 tiles in the smaller direction, 4 from 3, 2 from 2.
    if (swizzle > 1 && smaller < (swizzle == 8 ? 6 : swizzle == 4 ? 3 : 2)) continue;
    constexpr double most_beyond = 1.04;
    if (static_cast<double>(rounds(swizzle)) > most_beyond * static_cast<double>(least)) continue;
    knobs.push_back({1, swizzle});
    knobs.push_back({2, swizzle});
  }
  return knobs;
}

}  // namespace tessera::realize
