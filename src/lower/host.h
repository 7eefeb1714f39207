// The host side of a kernel as C++: the C interface of include/tessera/kernel.h.
#pragma once

#include "lower/device.h"
#include "lower/lower.h"

namespace tessera::lower {

struct HostSide {
  std::string text;  // without the guards of tessera/sides.h
  std::vector<std::string> ints;
  std::vector<std::string> tensors;  // as CudaSource has them
};

/// TS0855: a tensor map or a binding that a launch cannot have.
Result<HostSide> host_side(const core::Kernel& kernel, Ranges& ranges, const DeviceSide& device,
                           const Options& options);

}  // namespace tessera::lower
