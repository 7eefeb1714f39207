#include "tessera/kernel.h"

#include <cmath>
#include <cstdint>

constexpr int batches = 3, rows = 20, columns = 24, depth = 24;

static void run(const float* t0, const float* t1, float* t2) {
  for (int b = 0; b < batches; ++b) {
#pragma omp parallel for
    for (int m = 0; m < rows; ++m) {
      for (int n = 0; n < columns; ++n) {
        float sum = 0;
        for (int k = 0; k < depth; ++k) {
          const float x = t0[(b * rows + m) * depth + k];
          const float y = t1[(b * depth + n) * columns + k];
          sum += x * y;
        }
        t2[(b * rows + m) * columns + n] = sum;
      }
    }
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
