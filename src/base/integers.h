// Whole-number arithmetic of tiles and paddings.
#pragma once

#include <cstdint>

namespace tessera {

/// a / b rounded up, for a >= 0 and b > 0.
constexpr int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

/// The smallest multiple of `to` that is not below n, for n >= 0 and to > 0.
constexpr int64_t round_up(int64_t n, int64_t to) {
  return ceil_div(n, to) * to;
}

}  // namespace tessera
