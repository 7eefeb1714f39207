// The host side that every generated CUTLASS library shares: last error, tensors and integers of a launch.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>

#include "tessera/kernel.h"

#define TESSERA_EXPORT extern "C" __attribute__((visibility("default")))

namespace tessera_cutlass {

inline char* last_error() {
  static thread_local char text[512] = "";
  return text;
}

template <class... Args>
int fail(const char* format, Args... args) {
  std::snprintf(last_error(), 512, format, args...);
  return -1;
}
inline int fail(const char* text) { return fail("%s", text); }

/// The integers of a launch, in the order of describe()'s "ints".
struct Ints {
  const tessera_launch* launch;
  int64_t operator[](int i) const { return launch->ints[i]; }
  int at(int i) const { return static_cast<int>(launch->ints[i]); }
};

/// The matrix whose tensor number, element offset, leading stride and batch stride stand at `first` .. `first + 3`.
struct Matrix {
  void* data = nullptr;
  int64_t ld = 0;
  int64_t batch = 0;

  template <class Element>
  Element* as() const {
    return static_cast<Element*>(data);
  }
};

inline Matrix matrix(const tessera_launch* launch, int first, int element_bytes) {
  const int64_t* v = launch->ints + first;
  return {static_cast<char*>(launch->tensors[v[0]]) + v[1] * element_bytes, v[2], v[3]};
}

/// Refuses a launch made for another kernel before anything is read from it.
inline bool well_formed(const tessera_launch* launch, int int_count, int first_matrix,
                        int matrix_count) {
  if (launch->int_count != int_count) {
    fail("expected %d integers, got %d", int_count, launch->int_count);
    return false;
  }
  for (int i = 0; i < matrix_count; ++i) {
    const int64_t t = launch->ints[first_matrix + 4 * i];
    if (t < 0 || t >= launch->tensor_count) {
      fail("matrix %d names tensor %lld of %d", i, static_cast<long long>(t),
           launch->tensor_count);
      return false;
    }
  }
  return true;
}

inline int check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return 0;
  cudaGetLastError();
  return fail("%s: %s", what, cudaGetErrorString(status));
}

inline int64_t align256(int64_t bytes) { return (bytes + 255) / 256 * 256; }

}  // namespace tessera_cutlass
