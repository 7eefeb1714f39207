#include "tessera/kernel.h"

#include <cmath>
#include <cstdint>

constexpr int batches = 3, rows = 20, columns = 32, depth = 24;

static void product(const float* a, const float* b, float* c) {
  for (int m = 0; m < rows; ++m) {
    float sums[columns] = {};
    for (int k = 0; k < depth; ++k) {
      const float x = a[m * depth + k];
      for (int n = 0; n < columns; ++n) sums[n] += x * b[k * columns + n];
    }
    for (int n = 0; n < columns; ++n) c[m * columns + n] = sums[n];
  }
}

static void run(const float* t0, const float* t1, float* t2) {
#pragma omp parallel for
  for (int b = 0; b < batches; ++b) {
    const float* left = t0 + b * rows * depth;
    const float* right = t1 + b * rows * columns;
    float* result = t2 + b * rows * columns;
    product(left, right, result);
  }
}

const char* tessera_describe(void) {
  return "{\"abi\":1,\"name\":\"kernel\",\"ints\":[],\"tensors\":[\"t0\",\"t1\",\"t2\"],\"arch\":"
         "\"host\"}";
}
int64_t tessera_workspace_size(const tessera_launch*) {
  return 0;
}
int tessera_run(const tessera_launch* launch, void*, void*) {
  run(static_cast<const float*>(launch->tensors[0]), static_cast<const float*>(launch->tensors[1]),
      static_cast<float*>(launch->tensors[2]));
  return 0;
}
const char* tessera_last_error(void) {
  return "";
}
