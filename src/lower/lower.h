// A kernel of the core as one file of CUDA C++ with inline PTX, and the C interface that
// include/tessera/kernel.h states.
//
//   Result<CudaSource> source = lower(kernel);
//
// The text is what the core says, op by op: nothing is added, moved or left out, but that lanes
// which an op let go apart meet again before the next instruction of a whole warp. Both sides are
// compiled apart (include/tessera/sides.h). It is the same for the same kernel.
#pragma once

#include <string>
#include <vector>

#include "core/kernel.h"

namespace tessera::lower {

struct CudaSource {
  std::string name;
  std::string text;
  std::vector<std::string> ints;     // of a launch, in its order
  std::vector<std::string> tensors;  // inputs and outputs, without the workspaces
  int64_t shared_bytes = 0;
};

/// Errors, each with the author's line where there is one: TS0850 what this lowering cannot write,
/// TS0851 integers without bounds, TS0852 a matrix that wgmma cannot read, TS0853 an argument that
/// does not fit its operand, TS0854 registers whose numbers are no constants, TS0855 a launch that
/// cannot be.
Result<CudaSource> lower(const core::Kernel& kernel);

}  // namespace tessera::lower
