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
  std::vector<std::string> ints;  // of a launch, in its order
  /// Of a launch: inputs and outputs without the workspaces, by the name of the first that is bound
  /// to each place; "" where none is.
  std::vector<std::string> tensors;
  int64_t shared_bytes = 0;
};

/// Where a launch finds a tensor of the kernel.
struct Binding {
  int launch_tensor = 0;  // of tessera_launch: the pattern's inputs, then its outputs
  int64_t offset = 0;     // elements, from that tensor's first
};

struct Options {
  /// One for each input and output of the kernel, in its order; empty: each at its own place.
  std::vector<Binding> tensors;
  /// In place of `tensors`, each launch says where they are: behind the kernel's parameters come
  /// two integers for each input and output, `X_tensor` and `X_offset`, as Binding has them. One
  /// library then serves patterns that find the same matrices at other places.
  bool places_at_launch = false;
  std::string describe_name;  // what tessera_describe() says; empty: the kernel's name
  /// Bytes that L2 fetches at least where TMA asks for a part of them: 128 or 256. Neighbours that
  /// come along are for nothing where they are gone before their turn.
  int fetch_bytes = 256;
  /// Tensors that lie in the workspace, and are the launch's in no other way: what kernels of a
  /// sequence (sequence.h) leave for later ones. The host side then is two functions instead of the
  /// C interface: `run`, which is told where they are, and `workspace_size`, of those that it
  /// leaves.
  std::vector<std::string> in_workspace;
};

/// Errors, each with the author's line where there is one: TS0850 what this lowering cannot write,
/// TS0851 integers without bounds, TS0852 a matrix that wgmma cannot read, TS0853 an argument that
/// does not fit its operand, TS0854 registers whose numbers are no constants, TS0855 a launch that
/// cannot be.
Result<CudaSource> lower(const core::Kernel& kernel, const Options& options = {});

}  // namespace tessera::lower
