// The mainloop at fp32 accuracy: three products of tf32 parts. A goes to the tensor core from
// registers, where each thread splits what its own fragments need; B's parts are packed into shared
// memory. A 128 x 128 x 16 step takes the tensor core 768 clocks, and shared memory moves 96 KiB,
// which is 768 clocks too. With A packed as well it would be 120 KiB.
#pragma once

#include "tessera_wgmma/instructions.h"
#include "tessera_wgmma/params.h"

#if TESSERA_DEVICE_SIDE
#include "tessera_cutlass/split_tf32_split_tile.h"

namespace tessera_wgmma {

/// Both tf32 parts of A's fragments of one stage: 16 k are two steps of wgmma's 8. Register e of a
/// step is row lane / 4 + 8 (e % 2) of the warp's 16, k lane % 4 + 4 (e / 2) (PTX ISA, wgmma's A of
/// .tf32).
template <int RowBlocks>
struct SplitFragments {
  uint32_t high[RowBlocks][2][4], low[RowBlocks][2][4];

  /// From a raw tile of `Rows` rows: K-major with the 64-byte swizzle, or [k][row].
  template <int Rows, bool KMajor>
  __device__ __forceinline__ void load(const float* raw, int row, int lane) {
#pragma unroll
    for (int i = 0; i < RowBlocks; ++i) {
#pragma unroll
      for (int step = 0; step < 2; ++step) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int r = row + i * 64 + lane / 4 + 8 * (e % 2);
          const int chunk = 2 * step + e / 2;  // four k
          const int at = KMajor ? r * 16 + (chunk ^ (r / 2 % 4)) * 4 + lane % 4
                                : (chunk * 4 + lane % 4) * Rows + r;
          const tessera::split_detail::Parts parts = tessera::split_detail::split_fast(raw[at]);
          high[i][step][e] = __float_as_uint(parts.hi);
          low[i][step][e] = __float_as_uint(parts.lo);
        }
      }
    }
  }

  /// Keeps the registers from being used otherwise before this point: wgmma has read them.
  __device__ __forceinline__ void pin() {
#pragma unroll
    for (int i = 0; i < RowBlocks; ++i)
#pragma unroll
      for (int step = 0; step < 2; ++step)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          asm volatile("" : "+r"(high[i][step][e]), "+r"(low[i][step][e])::"memory");
  }
};

/// acc = A B^T over `steps` stages: both warpgroups split a stage while the tensor core multiplies
/// the one before. The tensor core truncates its sums, 48 times in 128 of k, which leaves a sum of
/// positive products 1.0e-6 low. So they are added up in fp32 registers every 128 of k; in slices
/// of K every 64, because a library that slices K too is exact to 2e-7 (256 x 256 x 524288), and
/// the error allowed follows it. `Ring` is where the warp stands; `Release` tells that a stage may
/// be filled again.
template <class C, class Mma, class Ring, class Release>
__device__ __forceinline__ void multiply_from_registers(
    float (&acc)[Derived<C>::row_blocks][C::columns / 2], uint32_t memory, uint8_t* generic,
    uint32_t full, Ring& turn, int& buffer, int steps, int group, int thread, int barrier,
    Release&& release) {
  using D = Derived<C>;
  constexpr int promote = (C::sliced ? 64 : 128) / C::depth;
  constexpr int both_groups = 256;
  static_assert(promote % 2 == 0, "a block of steps ends with the second set of fragments");
  const int row = group * D::group_rows + thread / 32 * 16;
  SplitFragments<D::row_blocks> fragments[2];
  float partial[D::row_blocks][C::columns / 2];
#pragma unroll
  for (int i = 0; i < D::row_blocks; ++i)
#pragma unroll
    for (float& x : acc[i]) x = 0;
  const auto split = [&](SplitFragments<D::row_blocks>& to) {
    mbarrier_wait(full + turn.stage * 8, turn.parity);
    const float* const raw = reinterpret_cast<const float*>(generic + turn.stage * D::stage_bytes);
    float* const packed =
        reinterpret_cast<float*>(generic + D::packed_offset + buffer * D::packed_bytes);
    tessera::split_detail::split_tile<C::columns, !C::b_k_major, both_groups>(
        raw + D::a_bytes / 4, packed, group * 128 + thread);
    to.template load<C::rows, C::a_k_major>(raw, row, thread % 32);
  };
  // All have read the stage: it is released, and B's parts may be multiplied.
  const auto meet = [&] {
    fence_proxy_async();
    bar_sync(barrier, both_groups);
    release(turn.stage);
    turn.next();
  };
  const auto issue = [&](SplitFragments<D::row_blocks>& a, bool accumulate) {
    const uint64_t b = descriptor(memory + D::packed_offset + buffer * D::packed_bytes, 16, 1024);
    a.pin();
#pragma unroll
    for (int i = 0; i < D::row_blocks; ++i) pin(partial[i]);
    wgmma_fence();
    // Low times high, high times low, high times high; B's low parts lie 64 bytes behind.
#pragma unroll
    for (int product = 0; product < 3; ++product) {
#pragma unroll
      for (int k = 0; k < 2; ++k) {
#pragma unroll
        for (int i = 0; i < D::row_blocks; ++i)
          Mma::issue(partial[i], product == 0 ? a.low[i][k] : a.high[i][k],
                     b + ((k * 32 + (product == 1 ? 64 : 0)) >> 4), accumulate || product + k != 0);
      }
    }
    wgmma_commit();
    buffer = buffer == D::packed_buffers - 1 ? 0 : buffer + 1;
  };
  int left = steps;
  // Issues a step, then splits the next into the other fragments, whose wgmmas have ended by then.
  const auto step = [&](SplitFragments<D::row_blocks>& now, SplitFragments<D::row_blocks>& next,
                        bool accumulate) {
    meet();
    issue(now, accumulate);
    if (--left == 0) return;
    wgmma_wait<1>();
    next.pin();
    split(next);
  };
  split(fragments[0]);
  while (left > 0) {
    const int last = left > promote ? left - promote : 0;
    bool accumulate = false;
    while (true) {
      step(fragments[0], fragments[1], accumulate);
      accumulate = true;
      if (left == last) break;
      step(fragments[1], fragments[0], true);
      if (left == last) break;
    }
    wgmma_wait<0>();
#pragma unroll
    for (int i = 0; i < D::row_blocks; ++i) {
      pin(partial[i]);
#pragma unroll
      for (int r = 0; r < C::columns / 2; ++r) acc[i][r] += partial[i][r];
    }
  }
  fragments[0].pin();
  fragments[1].pin();
  // The next tile begins to split into the next buffer: the other warpgroup must be done with it.
  bar_sync(barrier, both_groups);
}

}  // namespace tessera_wgmma
#endif  // TESSERA_DEVICE_SIDE
