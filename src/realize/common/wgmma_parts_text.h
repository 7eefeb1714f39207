// Parts of a product's columns in plain CUDA C++: a struct for each part that has something to
// compute, and the statements that fill its arguments (tessera_wgmma/parts.h).
#pragma once

#include <string>

#include "realize/common/gemm_problem.h"

namespace tessera::realize {

/// The structs and, for inside the epilogue, the function that applies them to a tile.
struct WgmmaParts {
  std::string structs, function;
};
WgmmaParts wgmma_parts(const GemmProblem& p);
/// How many parts and operands of parts the kernel is told of.
int wgmma_part_count(const GemmProblem& p);
int wgmma_part_operands(const GemmProblem& p);
/// Statements that fill Params' parts from a launch, whose integers for them start at `at`.
std::string wgmma_part_arguments(const GemmProblem& p, int at);

/// Why tiles of so many columns cannot be of one part each; nothing where they can.
std::optional<std::string> wgmma_refuses_parts(int columns, const GemmProblem& p);

}  // namespace tessera::realize
