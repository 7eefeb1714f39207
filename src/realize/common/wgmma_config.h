// How a product in plain CUDA C++ (tessera_wgmma/product.h) may be configured.
#pragma once

#include <optional>
#include <string>

#include "realize/common/gemm_problem.h"
#include "realize/common/sm90_config.h"

namespace tessera::realize {

/// A configuration of tessera_wgmma: the fields of Sm90Config that it has, and its stages.
struct WgmmaConfig {
  int rows = 128, columns = 128;  // of a block's tile; `columns` are those multiplied
  int cluster_m = 1, cluster_n = 1;
  Schedule schedule = Schedule::cooperative;
  bool split = false;  // fp32 operands, each as two tf32 parts
  bool tf32 = false;   // fp32 operands, which TMA rounds to tf32 on the way
  /// The batches are slices of K; their fp32 sums go to the workspace, and a second kernel adds
  /// them and applies the epilogue.
  bool sliced = false;
  int stages = 0;

  [[nodiscard]] Json to_json() const;
};

/// Buffers of shared memory that results pass through.
inline constexpr int wgmma_store_buffers = 2;
/// Weights that one product multiplies by: 2 of a gated MLP.
int products_of(const GemmProblem& p);
/// Bytes of an element of the widest result.
int widest_result(const GemmProblem& p);
/// K of a stage.
int wgmma_depth(const WgmmaConfig& c);
/// Stages that fit into shared memory beside what else the kernel keeps there; below 2 none do.
int wgmma_stages(const WgmmaConfig& c, const GemmProblem& p, int64_t shared_bytes);
/// Why the kernel has no such form for this problem; nothing when it has.
std::optional<std::string> wgmma_refuses(const WgmmaConfig& c, const GemmProblem& p);

}  // namespace tessera::realize
