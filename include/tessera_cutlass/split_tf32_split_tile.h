/* Splits a raw fp32 tile in shared memory into the packed, swizzled tile that wgmma reads. */
#pragma once
#include <cuda_runtime.h>

#include "tessera_cutlass/split_tf32_layout.h"

namespace tessera::split_detail {

/// split() in three instructions, for a loop that shares its issue slots with wgmma. Leaves in lo
/// the bits that the tensor core ignores. A NaN stays in lo; an infinity, and a finite |x|
/// >= 3.4e38 (2^128 - 2^116), give lo = NaN.
__device__ __forceinline__ Parts split_fast(float x) {
  float const hi = __uint_as_float((__float_as_uint(x) + 0x1000u) & 0xffffe000u);
  return {hi, x - hi};
}

/// 16 k of `Rows` rows, by `Threads` threads. Raw: K-major with the 64-byte swizzle (row pitch 64
/// bytes), or MN-major unswizzled ([k][row]). Packed: row pitch 128 bytes, high parts in chunks 0-3
/// and low parts in 4-7 of 16 bytes, 128-byte swizzle. Both swizzles xor the chunk with row bits,
/// which is what TMA and wgmma do when the tiles start at multiples of 1024 bytes. A thread takes 4
/// k of one row at a time; 8 consecutive lanes take 8 consecutive rows, so that loads and stores
/// touch every bank once.
template <int Rows, bool RowsContiguous, int Threads>
__device__ __forceinline__ void split_tile(float const* raw, float* packed, int thread) {
  static_assert(Rows % 8 == 0, "the swizzle repeats every 8 rows");
  constexpr int kItems = Rows * kSplitGroup / 4;
#pragma unroll
  for (int first = 0; first < kItems; first += Threads) {
    int const item = first + thread;
    if (kItems % Threads != 0 && item >= kItems) break;
    int const row = RowsContiguous ? item % Rows : item / 32 * 8 + item % 8;
    int const quad = RowsContiguous ? item / Rows : item / 8 % 4;
    float4 x;
    if constexpr (RowsContiguous) {
      float const* at = raw + quad * 4 * Rows + row;
      x = make_float4(at[0], at[Rows], at[2 * Rows], at[3 * Rows]);
    } else {
      x = *reinterpret_cast<float4 const*>(raw + row * 16 + (quad ^ (row / 2 % 4)) * 4);
    }
    Parts const p0 = split_fast(x.x), p1 = split_fast(x.y);
    Parts const p2 = split_fast(x.z), p3 = split_fast(x.w);
    float* const line = packed + row * 32;
    int const chunk = quad ^ (row % 8);
    *reinterpret_cast<float4*>(line + chunk * 4) = make_float4(p0.hi, p1.hi, p2.hi, p3.hi);
    *reinterpret_cast<float4*>(line + (chunk ^ 4) * 4) = make_float4(p0.lo, p1.lo, p2.lo, p3.lo);
  }
}

}  // namespace tessera::split_detail
