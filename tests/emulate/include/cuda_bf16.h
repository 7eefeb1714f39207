// bfloat16 of CUDA, on a host.
#pragma once

#include "cuda_runtime.h"

struct __nv_bfloat16 {
  uint16_t bits;
};
struct __nv_bfloat162 {
  __nv_bfloat16 x, y;
};
inline float __bfloat162float(__nv_bfloat16 v) {
  return __uint_as_float(unsigned(v.bits) << 16);
}
inline __nv_bfloat16 __float2bfloat16_rn(float f) {
  const unsigned b = __float_as_uint(f);
  if (f != f) return {0x7fff};
  return {uint16_t((b + 0x7fffu + ((b >> 16) & 1u)) >> 16)};
}
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
  return {__float2bfloat16_rn(x), __float2bfloat16_rn(y)};
}
