// Arithmetic modulo a prime below 2^31.
#pragma once

#include <cstdint>

namespace tessera::residue {

inline uint64_t times(uint64_t a, uint64_t b, uint64_t m) {
  return a * b % m;
}
inline uint64_t raised(uint64_t base, uint64_t exponent, uint64_t m) {
  uint64_t out = 1;
  for (; exponent != 0; exponent /= 2, base = times(base, base, m))
    if (exponent % 2 != 0) out = times(out, base, m);
  return out;
}
/// Of what is not 0: Fermat.
inline uint64_t inverse(uint64_t a, uint64_t m) {
  return raised(a, m - 2, m);
}
/// sum + a b, kept below 2^63; `m` below 2^31 and above 2^29. Reduce it by m in the end.
inline uint64_t plus_product(uint64_t sum, uint64_t a, uint64_t b, uint64_t m) {
  const uint64_t out = sum + a * b;
  return out >> 63 != 0 ? out - (m << 32) : out;
}

/// 64 well mixed bits of a number (the finalizer of MurmurHash3).
inline uint64_t mixed(uint64_t n) {
  n = (n ^ n >> 33) * 0xff51afd7ed558ccdULL;
  n = (n ^ n >> 33) * 0xc4ceb9fe1a85ec53ULL;
  return n ^ n >> 33;
}

}  // namespace tessera::residue
