// The text of a product in plain CUDA C++ (tessera_wgmma/product.h): its constants, its wgmma
// instruction, its epilogue and its host side.
#pragma once

#include <string>

#include "realize/common/gemm_problem.h"
#include "realize/common/wgmma_config.h"

namespace tessera::realize {

/// CUDA's name of an element type.
std::string cuda_type(DType t);

/// The whole file, named `realizer` in its description.
std::string wgmma_library(const GemmProblem& p, const WgmmaConfig& c, std::string_view realizer,
                          std::string_view arch);
/// The integers that it reads.
std::vector<int64_t> wgmma_values(const GemmProblem& p, const Knobs& knobs);
/// The same of the product in slices: each a run of K, or every so-many-th stage.
std::vector<int64_t> wgmma_sliced_values(const GemmProblem& p, const WgmmaConfig& c, int slices,
                                         bool interleaved);

}  // namespace tessera::realize
