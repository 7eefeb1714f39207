// Integer functions that C++ lacks, for index expressions on both sides. Division rounds down.
#pragma once

#include <stdint.h>

#ifdef __CUDACC__
#define TESSERA_INTEGER_FN __host__ __device__ __forceinline__
#else
#define TESSERA_INTEGER_FN inline
#endif

namespace tessera {

/// floor(a / b) and what is left of a; b is at least 1.
TESSERA_INTEGER_FN int floor_divide(int a, int b) {
  return a / b - (a % b < 0 ? 1 : 0);
}
TESSERA_INTEGER_FN int64_t floor_divide(int64_t a, int64_t b) {
  return a / b - (a % b < 0 ? 1 : 0);
}
TESSERA_INTEGER_FN int floor_remainder(int a, int b) {
  const int r = a % b;
  return r < 0 ? r + b : r;
}
TESSERA_INTEGER_FN int64_t floor_remainder(int64_t a, int64_t b) {
  const int64_t r = a % b;
  return r < 0 ? r + b : r;
}

TESSERA_INTEGER_FN int least(int a, int b) {
  return a < b ? a : b;
}
TESSERA_INTEGER_FN int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}
TESSERA_INTEGER_FN int most(int a, int b) {
  return a > b ? a : b;
}
TESSERA_INTEGER_FN int64_t most(int64_t a, int64_t b) {
  return a > b ? a : b;
}

}  // namespace tessera
