// Operands of a product that TMA cannot read, copied before it, by kernels/copies.py, to rows that
// begin at multiples of 16 bytes. The copies lie in the workspace.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "realize/common/gemm_problem.h"
#include "realize/common/proof.h"

#include "core/kernel.h"
#include "lower/sequence.h"

namespace tessera::realize {

struct TileCopy {
  std::string operand;   // A or B
  int64_t rows = 0;      // as the matrix lies, not as the product takes it
  int64_t columns = 0;   // that are contiguous
  int64_t matrices = 1;  // of batches
  Matrix from, to;
  std::shared_ptr<const core::Kernel> kernel;  // verified; `copy_A` or `copy_B`
  Proof proof;                                 // of that kernel, which all candidates share
};

/// One for A and one for B where TMA cannot read it. None of a problem with pairs: its second right
/// side would have to lie beside the first.
Result<std::vector<TileCopy>> tile_copies(const GemmProblem& p, const arch::Arch& arch);
/// The problem with the copies as operands.
GemmProblem tile_copied(GemmProblem p, const std::vector<TileCopy>& copies);
/// What the copies take at least: each element is read and written once.
double tile_copies_ms(const std::vector<TileCopy>& copies, const arch::Arch& arch);
/// Bytes of the workspace that they take.
int64_t tile_copies_bytes(const std::vector<TileCopy>& copies);

/// The launch's integers, by their names in the kernel, with the place of what is copied.
std::map<std::string, int64_t> tile_copy_values(const TileCopy& copy);

/// The copies, then the product.
lower::Sequence tile_copies_first(const std::vector<TileCopy>& copies, const core::Kernel& product);

}  // namespace tessera::realize
