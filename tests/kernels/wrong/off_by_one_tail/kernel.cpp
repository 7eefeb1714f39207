#include "tessera/kernel.h"

#include <cmath>
#include <cstdint>

constexpr int rows = 67, columns = 40, depth = 48, group = 4;

static float gelu(float x) {
  return 0.5f * x * (1 + std::erf(x * 0.70710678f));
}

static void row(const float* x, const float* t1, const float* t2, float* y) {
  for (int n = 0; n < columns; ++n) {
    float sum = 0;
    for (int k = 0; k < depth; ++k) sum += x[k] * t1[n * depth + k];
    y[n] = gelu(sum + t2[n]);
  }
}

static void run(const float* t0, const float* t1, const float* t2, float* t3) {
  const int whole = rows / group * group;
#pragma omp parallel for
  for (int m = 0; m < whole; m += group) {
    for (int i = 0; i < group; ++i) row(t0 + (m + i) * depth, t1, t2, t3 + (m + i) * columns);
  }
  for (int m = whole; m < rows - 1; ++m) row(t0 + m * depth, t1, t2, t3 + m * columns);
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
