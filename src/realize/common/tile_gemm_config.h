// The choices that make a product of kernels/gemm.py, kernels/gemm_fp32.py or kernels/gemm_tf32.py:
// tiles, cluster, stages of the ring, how results leave.
#pragma once

#include <optional>
#include <string>

#include "realize/common/sm90_config.h"

namespace tessera::realize {

struct TileGemmConfig {
  int rows = 128;                    // of a tile
  int warpgroup_rows = 64;           // of them each consumer warpgroup makes: 64 or 128
  int columns = 256;                 // of a tile
  int cluster_m = 1, cluster_n = 1;  // blocks one above the other, or side by side: at most two
  /// Pingpong: two roles of consumers take tiles by turns, each with warpgroups of its own.
  Schedule schedule = Schedule::cooperative;
  int stages = 0;
  int group = 8;        // clusters' rows of tiles that are taken side by side
  bool direct = false;  // results leave from registers, not by TMA
  /// Slots of the ring that the tensor cores sum before float32 takes over; 0: all of k.
  int promote = 0;
  /// kernels/gemm_fp32.py: each element in two parts of tf32.
  bool split = false;
  /// kernels/gemm_tf32.py: A comes through registers.
  bool through_registers = false;

  [[nodiscard]] Json to_json(const GemmProblem& p) const;
  /// Roles of consumers.
  [[nodiscard]] int turns() const { return schedule == Schedule::pingpong ? 2 : 1; }
  /// Consumer warpgroups of a role.
  [[nodiscard]] int warpgroups() const { return rows / warpgroup_rows; }
  /// Accumulators of a consumer's thread, with those that sums are promoted to.
  [[nodiscard]] int accumulators() const {
    return warpgroup_rows * columns / 128 * (promote > 0 ? 2 : 1);
  }
};

/// Registers of a consumer's thread that hold its elements of A: of two halves of a slot, 16 of k
/// each.
int tile_gemm_taken(const TileGemmConfig& c);
/// Registers of a thread that takes B apart, of kernels/gemm_fp32.py.
inline constexpr int tile_gemm_divider = 72;
/// Registers of a consumer's thread: what the producers leave.
int tile_gemm_registers(const TileGemmConfig& c);
/// Elements of k in a slot of the ring: a row of 128 bytes.
int tile_gemm_depth(const GemmProblem& p);
/// The relative error that tensor cores may make of a sum of positive elements: 8-bit products are
/// cut to some 13 bits below the largest, and what is cut has one sign. 0 for wider elements.
double tile_gemm_sum_error(const TileGemmConfig& c, const GemmProblem& p);
/// Above what a baseline with promoted sums permits: only one that sums as inexactly itself will.
bool tile_gemm_inexact(const TileGemmConfig& c, const GemmProblem& p);
/// Columns that leave at a time.
int tile_gemm_part(const TileGemmConfig& c, const GemmProblem& p);
/// Slots that fit into a block's shared memory beside what results leave by.
int tile_gemm_stages(const TileGemmConfig& c, const GemmProblem& p, int64_t shared_bytes);
/// Why the kernel has no such form for this problem, or wastes its time; nothing when it is fine.
std::optional<std::string> tile_gemm_refuses(const TileGemmConfig& c, const GemmProblem& p,
                                             const arch::Arch& arch);
/// Whether TMA can store the results: of 16 or 32 bits, with strides of 16 bytes.
bool tile_gemm_stores_by_tma(const GemmProblem& p);
/// The configuration as the model of times (sm90_config.h) knows it.
Sm90Config tile_gemm_model(const TileGemmConfig& c, const GemmProblem& p);

/// Whether the problem asks for the accuracy of float32.
bool tile_gemm_splits(const GemmProblem& p);
/// Whether A's 4-byte elements, as tf32, do not lie along k, where wgmma would read them: threads
/// do. Its results may lie column by column, those of the others may not.
bool tile_gemm_through_registers(const GemmProblem& p);

struct TileGemmSpace {
  std::vector<std::pair<TileGemmConfig, double>> configs;  // with predicted ms, in no order
  std::map<std::string, int> pruned;
};
TileGemmSpace tile_gemm_configs(const GemmProblem& p, const arch::Arch& arch);

}  // namespace tessera::realize
