// Softmax over rows that come in blocks of columns, on the accumulators of wgmma m64nNk16.
//
// A thread of the warpgroup holds two rows, 8 apart, and of each group of 8 columns two that
// adjoin: value c + 2 * i + 4 * j is row i, column 8 * j + c from the thread's first. The four
// threads of a quad share their rows. (Running maximum and sum: Milakov and Gimelshein, 2018.)
#pragma once

#include <math.h>

#include "tessera/sides.h"

namespace tessera_wgmma {

__device__ __forceinline__ float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// Of one thread; `scale` is that of the scores times log2(e), and positive.
struct OnlineSoftmax {
  float scale;
  float highest[2] = {-INFINITY, -INFINITY};  // the scores that powers of a row are relative to
  float sum[2] = {0, 0};                      // of the powers, this thread's columns only

  /// Turns a block's scores into powers relative to the highest score so far. What earlier blocks
  /// left is to be multiplied by `correction`, a factor a row; the sums are already.
  template <int N>
  __device__ __forceinline__ void operator()(float (&scores)[N], float (&correction)[2]) {
#pragma unroll
    for (int i = 0; i < 2; ++i) take_powers(scores, i, top_of(scores, i), correction[i]);
  }

  /// The same relative to a score that the highest is at most 2^8 above: the highest of some block
  /// before, most times, and then nothing is to be multiplied. Whether any row of the warp is.
  /// (Powers up to 2^8 are as exact as those up to 1. Lazy rescaling: FlashAttention-4.)
  template <int N>
  __device__ __forceinline__ bool lazily(float (&scores)[N], float (&correction)[2]) {
    bool any = false;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float top = top_of(scores, i);
      // Also where there was no column before; not where there is none yet.
      const bool grown = (top - highest[i]) * scale > 8.F;
      any |= grown;
      take_powers(scores, i, grown ? top : highest[i], correction[i]);
    }
    return __any_sync(0xffffffff, any);
  }

  /// One over the rows' sums, zero for a row without columns. All threads of a quad together, once.
  __device__ __forceinline__ void finish(float (&factor)[2]) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float total = sum[i];
      total += __shfl_xor_sync(0xffffffff, total, 1);
      total += __shfl_xor_sync(0xffffffff, total, 2);
      factor[i] = total == 0.F ? 0.F : 1.F / total;
    }
  }

 private:
  /// The highest score of row `i` so far.
  template <int N>
  __device__ __forceinline__ float top_of(const float (&scores)[N], int i) const {
    static_assert(N % 4 == 0, "two rows of two columns");
    float top = highest[i];
#pragma unroll
    for (int j = 2 * i; j < N; j += 4) top = fmaxf(top, fmaxf(scores[j], scores[j + 1]));
    top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, 1));
    return fmaxf(top, __shfl_xor_sync(0xffffffff, top, 2));
  }

  /// Powers of row `i` relative to `score`.
  template <int N>
  __device__ __forceinline__ void take_powers(float (&scores)[N], int i, float score,
                                              float& correction) {
    // A row without any column so far: its powers are zero, not NaN.
    const float origin = score == -INFINITY ? 0.F : score * scale;
    correction = power_of_two(highest[i] * scale - origin);
    highest[i] = score;
    float part = 0;
#pragma unroll
    for (int j = 2 * i; j < N; j += 4) {
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        scores[j + c] = power_of_two(scores[j + c] * scale - origin);
        part += scores[j + c];
      }
    }
    sum[i] = sum[i] * correction + part;
  }
};

/// Multiplies each row by its factor.
template <int N>
__device__ __forceinline__ void scale_rows(float (&values)[N], const float (&factor)[2]) {
#pragma unroll
  for (int j = 0; j < N; ++j) values[j] *= factor[j / 2 % 2];
}

/// Scores become the tanh of their multiples; its relative error is at most 2^-11.
template <int N>
__device__ __forceinline__ void take_tanh(float (&scores)[N], float scale) {
#pragma unroll
  for (float& score : scores) {
    score *= scale;
    asm("tanh.approx.f32 %0, %0;" : "+f"(score));
  }
}

/// Columns from `limit` on, counted from the thread's first, become minus infinity.
template <int N>
__device__ __forceinline__ void hide_columns(float (&scores)[N], const int (&limit)[2]) {
#pragma unroll
  for (int j = 0; j < N; ++j) {
    if (j / 4 * 8 + j % 2 >= limit[j / 2 % 2]) scores[j] = -INFINITY;
  }
}

/// Columns before `first`, counted from the thread's first, become minus infinity.
template <int N>
__device__ __forceinline__ void hide_columns_before(float (&scores)[N], const int (&first)[2]) {
#pragma unroll
  for (int j = 0; j < N; ++j) {
    if (j / 4 * 8 + j % 2 < first[j / 2 % 2]) scores[j] = -INFINITY;
  }
}

}  // namespace tessera_wgmma
