/* The pre-pass: fp32 matrices of any strides -> the packed form of split_tf32_layout.h. No CUTLASS
 * here.
 *
 *   cudaError_t error = tessera::split_tf32_pack(packed, source, stream);
 *
 * Reads each source element once and writes it twice (12 bytes of traffic an element), and
 * transposes on the way when rows are the contiguous dimension. Constant operands (weights) are
 * packed once and kept.
 */
#pragma once
#include <cstdint>
#include <cuda_runtime.h>

#include "tessera/programmatic_launch.h"
#include "tessera_cutlass/split_tf32_layout.h"

namespace tessera {

/// X[batch, row, k] at data[batch * batch_stride + row * row_stride + k * k_stride] (strides in
/// elements, >= 0). For A[M, K] rows = M; for B[K, N] rows = N, row_stride = the stride of N,
/// k_stride = the stride of K. Fast when k_stride or row_stride is 1; other strides are right but
/// slow.
struct SplitSource {
  float const* data;
  int64_t rows, k, batches;
  int64_t row_stride, k_stride, batch_stride;
};

namespace split_detail {

inline constexpr int kTileRows = 64;
inline constexpr int kTileK = 64;
inline constexpr int kThreads = 256;
// Row pitch of the transposing tile, indexed [k][row]. A lane gathers 4 k of one row while 4 lanes
// cover 16 k and 8 lanes 8 rows, so 4 * pitch = 8 (mod 32) puts the 32 lanes on 32 banks; even, for
// 8-byte stores.
inline constexpr int kTilePitch = kTileRows + 2;

/// hi rounds to the nearest tf32, on the bits. x - hi is exact and has at most 12 significant bits
/// (13 at a power of two); cutting it to the 11 of tf32 errs by one unit in the last place of x at
/// most, as rounding it would, and without bias, since its sign is independent of x. The tensor
/// core ignores the bits that are cut here. A value so large that hi would be infinite is truncated
/// instead, and a non-finite value has no low part.
__device__ __forceinline__ Parts split(float x) {
  uint32_t const bits = __float_as_uint(x);
  uint32_t const magnitude = bits & 0x7fffffffu;
  if (magnitude >= 0x7f800000u) return {x != x ? __uint_as_float(0x7fffe000u) : x, 0.f};
  uint32_t const half = magnitude < 0x7f7ff000u ? 0x1000u : 0u;
  float const hi = __uint_as_float((bits + half) & 0xffffe000u);
  return {hi, __uint_as_float(__float_as_uint(x - hi) & 0xffffe000u)};
}

/// Writes 4 consecutive k (k a multiple of 4) of one row: two 16-byte stores.
__device__ __forceinline__ void store_quad(float* packed_row, int64_t k, float4 x) {
  Parts const p0 = split(x.x), p1 = split(x.y), p2 = split(x.z), p3 = split(x.w);
  float* out = packed_row + k / kSplitGroup * kSplitGroupWidth + k % kSplitGroup;
  *reinterpret_cast<float4*>(out) = make_float4(p0.hi, p1.hi, p2.hi, p3.hi);
  *reinterpret_cast<float4*>(out + kSplitGroup) = make_float4(p0.lo, p1.lo, p2.lo, p3.lo);
}

/// Four elements from `at`, `step` apart; those at or beyond `valid` read as zero.
template <bool Vector>
__device__ __forceinline__ float4 load_quad(float const* at, int64_t step, int64_t valid) {
  if (Vector && valid >= 4) return *reinterpret_cast<float4 const*>(at);
  float4 x = make_float4(0.f, 0.f, 0.f, 0.f);
  if (valid > 0) x.x = at[0];
  if (valid > 1) x.y = at[step];
  if (valid > 2) x.z = at[2 * step];
  if (valid > 3) x.w = at[3 * step];
  return x;
}

struct TileOrigin {
  int64_t batch, row, k;
};

__device__ __forceinline__ TileOrigin tile_origin(int64_t row_tiles, int64_t k_tiles) {
  int64_t const tile = blockIdx.x;
  int64_t const row_tile = tile / k_tiles;
  return {row_tile / row_tiles, row_tile % row_tiles * kTileRows, tile % k_tiles * kTileK};
}

/// k contiguous (Vector: 16-byte loads) or arbitrary strides (not Vector). A thread reads 4 k of 4
/// rows.
template <bool Vector>
__global__ void __launch_bounds__(kThreads)
    pack_along_k(float* packed, SplitSource source, int64_t row_tiles, int64_t k_tiles) {
  after_previous(packed, source.data);
  TileOrigin const origin = tile_origin(row_tiles, k_tiles);
  int64_t const k = origin.k + threadIdx.x % 16 * 4;
  int64_t const width = split_row_elements(source.k);
  if (2 * k >= width) return;
  float const* from = source.data + origin.batch * source.batch_stride + k * source.k_stride;
  int64_t const first_row = origin.row + threadIdx.x / 16;
  float4 x[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    int64_t const row = first_row + 16 * i;
    int64_t const valid = row < source.rows ? source.k - k : 0;
    x[i] = load_quad<Vector>(from + row * source.row_stride, source.k_stride, valid);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    int64_t const row = first_row + 16 * i;
    if (row < source.rows) store_quad(packed + (origin.batch * source.rows + row) * width, k, x[i]);
  }
}

/// Rows contiguous: transposes a 64 x 64 tile through shared memory.
template <bool Vector>
__global__ void __launch_bounds__(kThreads)
    pack_along_rows(float* packed, SplitSource source, int64_t row_tiles, int64_t k_tiles) {
  __shared__ __align__(16) float tile[kTileK][kTilePitch];
  after_previous(packed, source.data);
  TileOrigin const origin = tile_origin(row_tiles, k_tiles);
  float const* from = source.data + origin.batch * source.batch_stride;
  int const quad_row = threadIdx.x % 16 * 4;
  float4 x[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    int64_t const k = origin.k + threadIdx.x / 16 + 16 * i, row = origin.row + quad_row;
    int64_t const valid = k < source.k ? source.rows - row : 0;
    x[i] = load_quad<Vector>(from + k * source.k_stride + row * source.row_stride,
                             source.row_stride, valid);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    float2* to = reinterpret_cast<float2*>(&tile[threadIdx.x / 16 + 16 * i][quad_row]);
    to[0] = make_float2(x[i].x, x[i].y);
    to[1] = make_float2(x[i].z, x[i].w);
  }
  __syncthreads();
  // A warp now takes one group of 16 k of 8 rows at a time; 4 groups x 8 row blocks = 32 such
  // pieces for 8 warps.
  int const warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int const group = warp % 4, local_k = group * kSplitGroup + lane % 4 * 4;
  int64_t const width = split_row_elements(source.k);
  if (2 * (origin.k + group * kSplitGroup) >= width) return;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    int const local_row = (warp / 4 + 2 * i) * 8 + lane / 4;
    int64_t const row = origin.row + local_row;
    if (row >= source.rows) continue;
    float4 const v = make_float4(tile[local_k][local_row], tile[local_k + 1][local_row],
                                 tile[local_k + 2][local_row], tile[local_k + 3][local_row]);
    store_quad(packed + (origin.batch * source.rows + row) * width, origin.k + local_k, v);
  }
}

inline bool aligned_quads(SplitSource const& s, int64_t other_stride) {
  return reinterpret_cast<uintptr_t>(s.data) % 16 == 0 && other_stride % 4 == 0 &&
         s.batch_stride % 4 == 0;
}

}  // namespace split_detail

/// Enqueues the split of `source` into `packed` (split_packed_elements(rows, k, batches) floats,
/// 128-byte aligned, row stride split_row_elements(k), batch stride rows times that). Allocates
/// nothing, safe to capture. cudaErrorInvalidValue: an empty source, or `packed` is not aligned.
inline cudaError_t split_tf32_pack(float* packed, SplitSource const& source, cudaStream_t stream) {
  using namespace split_detail;
  int64_t const row_tiles = (source.rows + kTileRows - 1) / kTileRows;
  int64_t const k_tiles = (source.k + kTileK - 1) / kTileK;
  int64_t const blocks = row_tiles * k_tiles * source.batches;
  if (blocks <= 0 || blocks > INT32_MAX || reinterpret_cast<uintptr_t>(packed) % 128 != 0) {
    return cudaErrorInvalidValue;
  }
  auto const launch = [&](auto* kernel) {
    return tessera::launch(kernel, static_cast<unsigned>(blocks), kThreads, 0, stream, packed,
                           source, row_tiles, k_tiles);
  };
  if (source.k_stride == 1) {
    return aligned_quads(source, source.row_stride) ? launch(pack_along_k<true>)
                                                    : launch(pack_along_k<false>);
  }
  if (source.row_stride == 1) {
    return aligned_quads(source, source.k_stride) ? launch(pack_along_rows<true>)
                                                  : launch(pack_along_rows<false>);
  }
  return launch(pack_along_k<false>);
}

}  // namespace tessera
