// Swizzle<B,M,S>: XOR of the B bits at M+S onto the B bits at M of an offset; an involution on
// offsets.
//
// The 128-byte swizzle of TMA and wgmma is swizzle(3,4,3) on bytes: the 16-byte column of a
// 128-byte row is XORed with the row modulo 8, so that a column of 8 rows lies in 8 different bank
// groups.
#pragma once

#include <cstdint>

namespace tessera {

struct Swizzle {
  int bits = 0;   // B: how many bits are changed; 0 is the identity
  int base = 0;   // M: the lowest changed bit
  int shift = 0;  // S: from the changed bits to the bits read; at least B

  [[nodiscard]] int64_t operator()(int64_t offset) const {
    int64_t mask = ((int64_t{1} << bits) - 1) << (base + shift);
    return offset ^ ((offset & mask) >> shift);
  }
  /// Offsets that are equal modulo this are moved alike: the alignment that a swizzled buffer
  /// needs.
  [[nodiscard]] int64_t period() const {
    return bits == 0 ? 1 : int64_t{1} << (base + shift + bits);
  }
};

}  // namespace tessera
