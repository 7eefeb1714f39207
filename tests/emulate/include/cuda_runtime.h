// What emitted sources use of CUDA, on a host (tests/emulate/README.md).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "tessera_emulate/grid.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
#define __shared__ static

struct tst_dim {
  unsigned x = 0;
};
// A thread's own numbers: read through functions, since every fiber has others.
inline tst_dim blockIdx, gridDim;
#define threadIdx (tst_dim{tessera_emulate::Block::now().thread})

inline void __syncthreads() {
  tessera_emulate::Block::now().meet_block();
}
inline float __shfl_xor_sync(unsigned, float v, int distance) {
  const unsigned lane = tessera_emulate::Block::now().thread % 32;
  return tessera_emulate::among_lanes("shfl", v,
                                      [&](auto of) { return of(lane ^ unsigned(distance)); });
}
inline float __uint_as_float(unsigned b) {
  float f;
  std::memcpy(&f, &b, 4);
  return f;
}
inline unsigned __float_as_uint(float f) {
  unsigned b;
  std::memcpy(&b, &f, 4);
  return b;
}
inline float __int_as_float(int b) {
  return __uint_as_float(unsigned(b));
}
inline int __float_as_int(float f) {
  return int(__float_as_uint(f));
}
inline float __fdividef(float a, float b) {
  return a / b;
}
inline float rsqrtf(float x) {
  return 1.0f / std::sqrt(x);
}

using cudaStream_t = void*;
enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidDevice = 101 };
enum cudaDeviceAttr { cudaDevAttrMultiProcessorCount };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
inline cudaError_t cudaGetLastError() {
  return cudaSuccess;
}
inline const char* cudaGetErrorString(cudaError_t) {
  return "";
}
inline cudaError_t cudaGetDevice(int* d) {
  return *d = 0, cudaSuccess;
}
inline cudaError_t cudaDriverGetVersion(int* v) {
  return *v = 13000, cudaSuccess;
}
inline cudaError_t cudaDeviceGetAttribute(int* v, cudaDeviceAttr, int) {
  return *v = 2, cudaSuccess;
}
inline cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) {
  return cudaSuccess;
}

struct dim3 {
  unsigned x = 1;
  explicit dim3(unsigned n = 1) : x(n) {}
};
enum cudaLaunchAttributeID { cudaLaunchAttributeProgrammaticStreamSerialization = 1 };
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  struct {
    int programmaticStreamSerializationAllowed;
  } val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  cudaLaunchAttribute* attrs = nullptr;
  unsigned numAttrs = 0;
};

/// Blocks one after the other. With the attribute, memory cannot be touched before a wait.
template <class... P>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(P...),
                               P... arguments) {
  if (config->numAttrs > 0) tessera_emulate::begin_grid();
  gridDim.x = config->gridDim.x;
  for (unsigned b = 0; b < config->gridDim.x; ++b) {
    blockIdx.x = b;
    tessera_emulate::Block::now().run(config->blockDim.x, config->dynamicSmemBytes,
                                      [&] { kernel(arguments...); });
  }
  if (config->numAttrs > 0 && !tessera_emulate::waited())
    tessera_emulate::stop("a kernel that may start early did not wait");
  return cudaSuccess;
}
