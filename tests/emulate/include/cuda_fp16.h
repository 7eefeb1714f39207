// half of CUDA, on a host.
#pragma once

#include "cuda_runtime.h"

struct __half {
  _Float16 value;
};
struct __half2 {
  __half x, y;
};
inline float __half2float(__half v) {
  return float(v.value);
}
inline __half __float2half_rn(float f) {
  return {_Float16(f)};
}
inline __half2 __floats2half2_rn(float x, float y) {
  return {__float2half_rn(x), __float2half_rn(y)};
}
