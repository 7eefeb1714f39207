#include "tessera/kernel.h"

#include <cmath>
#include <cstdint>

constexpr int rows = 67, columns = 40, depth = 48;

static float gelu(float x) {
  return 0.5f * x * (1 + std::erf(x * 0.70710678f));
}

static void run(const float* t0, const float* t1, const float* t2, float* t3) {
#pragma omp parallel for
  for (int m = 0; m < rows; ++m) {
    float sums[columns] = {};
    for (int k = 0; k < depth; ++k) {
      const float x = t0[m * depth + k];
      for (int n = 0; n < columns; ++n) sums[n] += x * t1[n * depth + k];
    }
    for (int n = 0; n < columns; ++n) {
      const float bias = t2[n];
      t3[m * columns + n] = gelu(sums[n]) + bias;
    }
  }
}

const char* tessera_describe(void) {
  return "{\"abi\":1,\"name\":\"kernel\",\"ints\":[],\"tensors\":[\"t0\",\"t1\",\"t2\",\"t3\"],"
         "\"arch\":\"host\"}";
}
int64_t tessera_workspace_size(const tessera_launch*) {
  return 0;
}
int tessera_run(const tessera_launch* launch, void*, void*) {
  run(static_cast<const float*>(launch->tensors[0]), static_cast<const float*>(launch->tensors[1]),
      static_cast<const float*>(launch->tensors[2]), static_cast<float*>(launch->tensors[3]));
  return 0;
}
const char* tessera_last_error(void) {
  return "";
}
