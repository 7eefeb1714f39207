// A product as a kernel of the kernel language: kernels/gemm.py, or kernels/gemm_fp32.py, with a
// problem's types and layouts, and an epilogue function that is written from the problem's DAG.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "realize/common/tile_gemm_config.h"

#include "core/kernel.h"

namespace tessera::realize {

/// `def epilogue(x, b, m, n, ...)`: the DAG over the sums x of a part of a tile, with the problem's
/// leaves as tensors of its own, X0, X1, ... Of a paired problem, `def epilogue(gate, up, b, m, n,
/// ...)` over both sums. An error (unsupported_gemm) for a leaf that is no
/// matrix, row, column or scalar, and for a number that is not finite.
Result<std::string> epilogue_function(const GemmProblem& p);

/// A node of the DAG as one expression over the operands' texts.
std::string expression_text(const pointwise::Dag& dag, const std::vector<std::string>& operands,
                            int node);
/// An error (unsupported_gemm) for a number that is not finite.
Status finite_numbers(const pointwise::Dag& dag);

/// What the kernel computes, as `@kernel(means=...)` says it. `sum` stands in the place of the sum
/// of products, where one is given: then the problem has neither parts nor pairs.
std::string meaning_of(const GemmProblem& p, const std::string& sum = "");

/// The kernel, verified. Its source is the file with the function behind it.
Result<core::Kernel> tile_gemm_kernel(const GemmProblem& p, const TileGemmConfig& c,
                                      const arch::Arch& arch);

/// The launch's integers for this problem, by their names in the kernel, with the places of
/// tensors.
std::map<std::string, int64_t> tile_gemm_values(const GemmProblem& p);

}  // namespace tessera::realize
