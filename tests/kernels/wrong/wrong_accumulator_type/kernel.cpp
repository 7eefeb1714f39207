#include "tessera/kernel.h"

#include <cmath>
#include <cstdint>
#include <cstring>

struct bf16 {
  uint16_t bits;
  bf16(float x) {
    uint32_t u;
    std::memcpy(&u, &x, 4);
    bits = x != x ? 0x7fff : uint16_t((u + 0x7fff + (u >> 16 & 1)) >> 16);
  }
  operator float() const {
    const uint32_t u = uint32_t(bits) << 16;
    float x;
    std::memcpy(&x, &u, 4);
    return x;
  }
};

constexpr int rows = 67, columns = 40, depth = 48;

static float gelu(float x) {
  return 0.5f * x * (1 + std::erf(x * 0.70710678f));
}

static void run(const bf16* t0, const bf16* t1, const bf16* t2, bf16* t3) {
#pragma omp parallel for
  for (int m = 0; m < rows; ++m) {
    for (int n = 0; n < columns; ++n) {
      bf16 sum = 0;
      for (int k = 0; k < depth; ++k) {
        const float product = t0[m * depth + k] * t1[n * depth + k];
        sum = sum + product;
      }
      const float y = gelu(sum + t2[n]);
      t3[m * columns + n] = y;
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
  run(static_cast<const bf16*>(launch->tensors[0]), static_cast<const bf16*>(launch->tensors[1]),
      static_cast<const bf16*>(launch->tensors[2]), static_cast<bf16*>(launch->tensors[3]));
  return 0;
}
const char* tessera_last_error(void) {
  return "";
}
