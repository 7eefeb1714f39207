// How an epilogue reads its operands: one value, or those of two neighbouring columns.
#pragma once

#include "tessera_wgmma/params.h"

#if TESSERA_DEVICE_SIDE
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace tessera_wgmma {

template <int Which, class First, class... Rest>
struct Nth : Nth<Which - 1, Rest...> {};
template <class First, class... Rest>
struct Nth<0, First, Rest...> {
  using Type = First;
};

__device__ __forceinline__ float value(float x) {
  return x;
}
__device__ __forceinline__ float value(__nv_bfloat16 x) {
  return __bfloat162float(x);
}
__device__ __forceinline__ float value(__half x) {
  return __half2float(x);
}

__device__ __forceinline__ float2 both(const float* at) {
  return *reinterpret_cast<const float2*>(at);
}
__device__ __forceinline__ float2 both(const __nv_bfloat16* at) {
  return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(at));
}
__device__ __forceinline__ float2 both(const __half* at) {
  return __half22float2(*reinterpret_cast<const __half2*>(at));
}

template <class T>
__device__ __forceinline__ const T* batch_of(const Operand& x, int batch) {
  return static_cast<const T*>(x.data) + batch * x.batch;
}
template <class T>
__device__ __forceinline__ const T* batch_of(const OperandOfRuns& x, int batch) {
  const int run = batch / x.inner;
  return static_cast<const T*>(x.data) + (batch - run * x.inner) * x.batch + run * x.outer;
}

/// An element at `index`; 0 outside.
template <class T, class X>
__device__ __forceinline__ float one(const X& x, int batch, int64_t index, bool inside) {
  return inside ? value(batch_of<T>(x, batch)[index]) : 0.0f;
}

/// Elements that lie side by side, the first at a multiple of both.
template <class T, class X>
__device__ __forceinline__ float2 adjacent(const X& x, int batch, int64_t index, bool inside) {
  return inside ? both(batch_of<T>(x, batch) + index) : float2{0.0f, 0.0f};
}

/// Elements `distance` apart.
template <class T, class X>
__device__ __forceinline__ float2 apart(const X& x, int batch, int64_t index, int64_t distance,
                                        bool inside) {
  return {one<T>(x, batch, index, inside), one<T>(x, batch, index + distance, inside)};
}

}  // namespace tessera_wgmma
#endif  // TESSERA_DEVICE_SIDE
