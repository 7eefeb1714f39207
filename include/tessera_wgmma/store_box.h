// Results in shared memory, where TMA stores them from.
#pragma once

#include "tessera/sides.h"

#if TESSERA_DEVICE_SIDE
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace tessera_wgmma {

/// One value of each of two neighbouring columns in shared memory, as TMA stores it: rows of 32
/// columns, 16-byte chunks exchanged by the swizzle that fits their length.
template <class T>
__device__ __forceinline__ void put(uint32_t box, int row, int column, float x, float y);
template <>
__device__ __forceinline__ void put<float>(uint32_t box, int row, int column, float x, float y) {
  const uint32_t chunk = (column / 4) ^ (row % 8);
  asm volatile(
      "st.shared.v2.f32 [%0], {%1, %2};" ::"r"(box + row * 128 + chunk * 16 + column % 4 * 4),
      "f"(x), "f"(y)
      : "memory");
}
__device__ __forceinline__ void put16(uint32_t box, int row, int column, uint32_t both) {
  const uint32_t chunk = (column / 8) ^ (row / 2 % 4);
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(box + row * 64 + chunk * 16 + column % 8 * 2),
               "r"(both)
               : "memory");
}
template <>
__device__ __forceinline__ void put<__nv_bfloat16>(uint32_t box, int row, int column, float x,
                                                   float y) {
  const __nv_bfloat162 v = __floats2bfloat162_rn(x, y);
  put16(box, row, column, *reinterpret_cast<const uint32_t*>(&v));
}
template <>
__device__ __forceinline__ void put<__half>(uint32_t box, int row, int column, float x, float y) {
  const __half2 v = __floats2half2_rn(x, y);
  put16(box, row, column, *reinterpret_cast<const uint32_t*>(&v));
}

}  // namespace tessera_wgmma
#endif
