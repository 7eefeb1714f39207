// Functions of a 16-bit epilogue by the special function unit, whose rate (16 a clock and SM) is
// what an epilogue of a sigmoid waits for. Infinities and NaN come out as PyTorch has them.
#pragma once

#include "tessera/sides.h"

#if TESSERA_DEVICE_SIDE

// tsb_: for results of at most 8 bits of mantissa. One instruction each; the relative error of
// tanh.approx is 2^-11 (PTX ISA), so sigmoid is off by 2.5e-4 and silu by |x| times that, at most.

__device__ __forceinline__ float tsb_tanh(float x) {
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ float tsb_sigmoid(float x) {
  return fmaf(0.5f, tsb_tanh(0.5f * x), 0.5f);
}

__device__ __forceinline__ float tsb_silu(float x) {
  const float half = 0.5f * x;
  return fmaf(half, tsb_tanh(half), half);
}

__device__ __forceinline__ float tsb_gelu_tanh(float x) {
  const float u = x * fmaf(x * x, 0.7978845608f * 0.044715f, 0.7978845608f);
  const float half = 0.5f * x;
  return fmaf(half, tsb_tanh(u), half);
}

// tsf_: for 11 bits. Two instructions each and an error near 1e-6, far below the rounding of the
// result.

__device__ __forceinline__ float tsf_exp(float x) {
  return __expf(x);
}

__device__ __forceinline__ float tsf_sigmoid(float x) {
  return __fdividef(1.0f, 1.0f + __expf(-x));
}

__device__ __forceinline__ float tsf_silu(float x) {
  return __fdividef(x, 1.0f + __expf(-x));
}

__device__ __forceinline__ float tsf_tanh(float x) {
  const float wide = 1.0f - __fdividef(2.0f, 1.0f + __expf(2.0f * x));
  const float narrow = fmaf(x * x * x, -1.0f / 3.0f, x);  // the other form cancels near 0
  return fabsf(x) < 0.02f ? narrow : wide;
}

/// x * sigmoid(2u), which is 0.5 x (1 + tanh(u)) with u = sqrt(2/pi) (x + 0.044715 x^3).
__device__ __forceinline__ float tsf_gelu_tanh(float x) {
  const float twice_u = x * fmaf(x * x, 2.0f * 0.7978845608f * 0.044715f, 2.0f * 0.7978845608f);
  return __fdividef(x, 1.0f + __expf(-twice_u));
}

/// 0.5 x erfc(-x / sqrt 2), erfc by Abramowitz and Stegun 7.1.26 (absolute error 1.5e-7).
__device__ __forceinline__ float tsf_gelu_erf(float x) {
  const float z = fabsf(x) * 0.70710678f;
  const float t = __fdividef(1.0f, fmaf(0.3275911f, z, 1.0f));
  float poly = fmaf(1.061405429f, t, -1.453152027f);
  poly = fmaf(poly, t, 1.421413741f);
  poly = fmaf(poly, t, -0.284496736f);
  poly = fmaf(poly, t, 0.254829592f);
  const float erfc = poly * t * __expf(-z * z);
  return 0.5f * x * (x >= 0.0f ? 2.0f - erfc : erfc);
}

#endif  // TESSERA_DEVICE_SIDE
