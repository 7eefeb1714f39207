// Tensor maps as the host side encodes them, once a launch: the driver's function is found by the
// runtime, so that a library needs no libcuda of its own.
#pragma once

#include <cuda.h>

#include "tessera/sides.h"

#if TESSERA_HOST_SIDE
#include "tessera/launch_error.h"

namespace tessera {

using EncodeTiled = decltype(&cuTensorMapEncodeTiled);

/// The driver's function, found once; null where the driver has none.
inline EncodeTiled tensor_map_encoder() {
  static const EncodeTiled found = [] {
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult status;
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault,
                                         &status) != cudaSuccess) {
      (void)cudaGetLastError();
      return EncodeTiled{nullptr};
    }
    return status == cudaDriverEntryPointSuccess ? reinterpret_cast<EncodeTiled>(entry) : nullptr;
  }();
  return found;
}

/// A tensor and the box that is moved at a time; dimension 0 is the contiguous one.
struct TiledTensor {
  const char* name;
  CUtensorMapDataType type;
  int rank;
  const void* data;
  cuuint64_t extents[5];  // elements
  cuuint64_t strides[4];  // bytes, of dimensions 1 and up
  cuuint32_t box[5];      // elements
  CUtensorMapSwizzle swizzle;
  CUtensorMapFloatOOBfill fill;
  CUtensorMapL2promotion fetch;  // bytes that L2 fetches at least
};

/// 0, or -1 with the reason in tessera_last_error().
inline int encode(CUtensorMap& map, const TiledTensor& t) {
  using tessera_launch_error::fail;
  const EncodeTiled function = tensor_map_encoder();
  if (function == nullptr) return fail("the driver has no cuTensorMapEncodeTiled");
  if (reinterpret_cast<uintptr_t>(t.data) % 16 != 0)
    return fail("%s does not start at a multiple of 16 bytes", t.name);
  for (int i = 0; i + 1 < t.rank; ++i)
    if (t.strides[i] % 16 != 0)
      return fail("%s has a stride of %llu bytes, which is no multiple of 16", t.name,
                  static_cast<unsigned long long>(t.strides[i]));
  const cuuint32_t steps[5] = {1, 1, 1, 1, 1};
  const CUresult status =
      function(&map, t.type, static_cast<cuuint32_t>(t.rank), const_cast<void*>(t.data), t.extents,
               t.strides, t.box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, t.swizzle, t.fetch, t.fill);
  if (status == CUDA_SUCCESS) return 0;
  return fail("cuTensorMapEncodeTiled of %s: error %d", t.name, static_cast<int>(status));
}

}  // namespace tessera
#endif
