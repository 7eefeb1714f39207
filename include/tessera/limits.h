// What a library asks of a GPU once: how many multiprocessors it has, and room beyond 48 KiB.
#pragma once

#include "tessera/per_device.h"
#include "tessera/sides.h"

#if TESSERA_HOST_SIDE
namespace tessera {

/// The multiprocessors of the current device, at least 1.
inline int multiprocessors() {
  static PerDevice<int> counts;
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return 1;  // the launch that follows says why
  const int* const found = counts.get(device, [&](int& n) {
    return cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, device) != cudaSuccess;
  });
  return found != nullptr && *found > 0 ? *found : 1;
}

/// Raises a kernel's limit of dynamic shared memory, which is one a device, where `raised` does not
/// know that it has been.
template <class Kernel>
cudaError_t allow_shared_memory(PerDevice<bool>& raised, Kernel&& kernel, int bytes) {
  int device = 0;
  cudaError_t status = cudaGetDevice(&device);
  if (status != cudaSuccess) return status;
  status = cudaErrorInvalidDevice;
  const bool* const done = raised.get(device, [&](bool& is_raised) {
    const void* found = nullptr;
    status = find(kernel, &found);
    if (status == cudaSuccess) {
      status = cudaFuncSetAttribute(found, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    }
    is_raised = status == cudaSuccess;
    return !is_raised;
  });
  return done != nullptr ? cudaSuccess : status;
}

}  // namespace tessera
#endif
