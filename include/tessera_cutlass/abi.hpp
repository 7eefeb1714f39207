// The host side that every generated CUTLASS library shares: last error, tensors and integers of a
// launch.
#pragma once

#include <cstdint>
#include <cuda_runtime.h>
#include <initializer_list>

#include "tessera/kernel.h"
#include "tessera/launch_error.h"

#define TESSERA_EXPORT extern "C" __attribute__((visibility("default")))

namespace tessera_cutlass {

using tessera_launch_error::check;
using tessera_launch_error::fail;
using tessera_launch_error::last_error;

/// The matrix whose tensor number, element offset, leading stride and batch stride stand at `first`
/// .. `first + 3`; tensor -1 is the workspace.
struct Matrix {
  void* data = nullptr;
  int64_t ld = 0;
  int64_t batch = 0;

  template <class Element>
  Element* as() const {
    return static_cast<Element*>(data);
  }
};

inline Matrix matrix(const tessera_launch* launch, void* workspace, int first, int element_bytes) {
  const int64_t* v = launch->ints + first;
  void* base = v[0] < 0 ? workspace : launch->tensors[v[0]];
  return {static_cast<char*>(base) + v[1] * element_bytes, v[2], v[3]};
}

/// TMA and 16-byte accesses need it of every pointer.
inline bool aligned16(std::initializer_list<const void*> pointers) {
  for (const void* p : pointers) {
    if (reinterpret_cast<uintptr_t>(p) % 16 != 0) {
      fail("a tensor does not start at a multiple of 16 bytes");
      return false;
    }
  }
  return true;
}

/// Vectors of so many bytes are read from it.
inline bool aligned_to(const void* pointer, int bytes) {
  if (reinterpret_cast<uintptr_t>(pointer) % static_cast<uintptr_t>(bytes) == 0) return true;
  fail("a tensor does not start at a multiple of %d bytes", bytes);
  return false;
}

/// Whether the kernel's one parameter is of so many bytes: the device side was compiled apart.
inline bool takes([[maybe_unused]] const void* kernel, [[maybe_unused]] size_t bytes) {
#if CUDART_VERSION >= 13000
  size_t offset = 0, has = 0;
  if (check(cudaFuncGetParamInfo(kernel, 0, &offset, &has), "cudaFuncGetParamInfo")) return false;
  if (has != bytes) {
    fail("the kernel takes %zu bytes, the host side has %zu", has, bytes);
    return false;
  }
#endif
  return true;
}

inline int64_t align256(int64_t bytes) {
  return (bytes + 255) / 256 * 256;
}

}  // namespace tessera_cutlass
