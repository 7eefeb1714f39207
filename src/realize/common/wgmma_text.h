// The text of a product in plain CUDA C++ (tessera_wgmma/product.h): its constants, its wgmma
// instruction, its epilogue and its host side.
#pragma once

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

/// CUDA's name of an element type.
std::string cuda_type(DType t);

/// K of a stage.
int wgmma_depth(const WgmmaConfig& c);
/// Stages that fit into shared memory beside what else the kernel keeps there; below 2 none do.
int wgmma_stages(const WgmmaConfig& c, const GemmProblem& p, int64_t shared_bytes);
/// Why the kernel has no such form for this problem; nothing when it has.
std::optional<std::string> wgmma_refuses(const WgmmaConfig& c, const GemmProblem& p);

/// The whole file, named `realizer` in its description.
std::string wgmma_library(const GemmProblem& p, const WgmmaConfig& c, std::string_view realizer,
                          std::string_view arch);
/// The integers that it reads.
std::vector<int64_t> wgmma_values(const GemmProblem& p, const Knobs& knobs);
/// The same of the product in slices: each a run of K, or every so-many-th stage.
std::vector<int64_t> wgmma_sliced_values(const GemmProblem& p, const WgmmaConfig& c, int slices,
                                         bool interleaved);

}  // namespace tessera::realize
