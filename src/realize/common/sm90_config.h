// The configuration space of CUTLASS 3.x on Hopper, inferred from its hierarchy (tile, cluster,
// kernel and epilogue schedule, stages, scheduler) and pruned by its constraints before anything is
// compiled.
#pragma once

#include <map>
#include <string>

#include "arch/arch.h"
#include "realize/common/gemm_problem.h"
#include "realize/realize.h"

namespace tessera::realize {

enum class Schedule : uint8_t { cooperative, pingpong };
enum class Scheduler : uint8_t { persistent, stream_k };
/// CUTLASS' own, or ours at fp32 accuracy: operands split in two tf32 parts by a pass before, or on
/// the way, both into shared memory or A into registers; with warps that split B alone (divided).
enum class Mainloop : uint8_t { stock, split_packed, split_inline, split_registers, split_divided };

struct Sm90Config {
  int tile_m = 128, tile_n = 128, tile_k = 64;
  int cluster_m = 1, cluster_n = 1;
  Schedule schedule = Schedule::cooperative;
  Scheduler scheduler = Scheduler::persistent;
  int stages = 0;           // of the mainloop; 0 lets CUTLASS fill shared memory
  bool fast_accum = false;  // fp8 only: no promotion of accumulators
  Mainloop mainloop = Mainloop::stock;
  int epilogue_n = 0;  // columns of the epilogue's tile; 0 lets CUTLASS choose
  /// Subtiles of D that may wait in shared memory for their TMA store; 0 lets CUTLASS choose (2).
  int store_buffers = 0;
  /// Two products in one: tile_n columns of the mainloop's tile are half as many results.
  bool paired = false;
  /// Batches are slices of K that alternate by tile_k, instead of one run each.
  bool interleaved = false;
  /// Batches by arrays of pointers instead of a stride.
  bool pointers = false;
  /// Columns in parts with their own epilogues.
  bool parted = false;

  [[nodiscard]] Json to_json() const;
  [[nodiscard]] int accumulator_registers() const;  // of one thread
  [[nodiscard]] int output_n() const;               // columns of the result's tile
};

/// What a problem needs of shared memory beside the mainloop, and what limits its tiles.
struct Sm90Needs {
  int element_bytes = 2;
  int output_bytes = 2;
  int source_bytes = 0;      // of the operand loaded by TMA as C; 0 without one
  int further_bytes = 0;     // of one element of all results beyond the first
  int row_vector_bytes = 0;  // of one column of all row broadcasts, staged in shared memory
  bool a_in_registers =
      false;  // tf32 or fp8 with an M-major A: transposed on the way to the tensor core
  bool b_transposed =
      false;  // tf32 with neither operand contiguous in k: B is transposed in shared memory
};
Sm90Needs needs_of(const GemmProblem& p);

/// Whether the mainloop stages A in shared memory rows of 128 bytes (tessera_cutlass/wide_rows.h):
/// CUTLASS' own, with 4-byte elements through registers. Not where parts of the columns have
/// epilogues of their own, which count on wgmma's order of the rows.
bool wide_rows(const GemmProblem& p, const Sm90Config& c);

/// Bytes of the epilogue in shared memory (128-byte granules): the reused C and D stages and the
/// row vectors.
int64_t epilogue_bytes(const Sm90Config& c, const Sm90Needs& needs);
/// Mainloop stages that fit beside the epilogue.
int mainloop_stages(const Sm90Config& c, const Sm90Needs& needs, int64_t shared_bytes);

/// Predicted milliseconds: waves of tiles, each limited by the tensor core, by shared memory or by
/// L2, and the DRAM's floor under all. `l2_bytes_per_clock` etc. are stated in the source file with
/// their origin.
double predict_ms(const Sm90Config& c, const GemmProblem& p, const arch::Arch& arch);

/// Bytes that all CTAs read from L2: every tile its rows of A and B, what a cluster shares once.
double l2_read_bytes(const Sm90Config& c, const GemmProblem& p);

struct ConfigSpace {
  std::vector<std::pair<Sm90Config, double>> configs;  // with predicted ms, best first
  std::map<std::string, int> pruned;
};
ConfigSpace sm90_configs(const GemmProblem& p, const arch::Arch& arch);

/// Run-time knobs: raster order, swizzle, and for stream-K its decomposition.
struct Knobs {
  int raster = 0;  // 0 CUTLASS' own choice, 1 along M, 2 along N
  int swizzle = 1;
  int splits = 1;
  int decomposition = 0;  // 0 heuristic, 1 data parallel, 2 split-K, 3 stream-K
  [[nodiscard]] Json to_json() const;
};
/// The legal ones for this problem, the most promising first.
std::vector<Knobs> sm90_knobs(const Sm90Config& c, const GemmProblem& p, const arch::Arch& arch);

}  // namespace tessera::realize
