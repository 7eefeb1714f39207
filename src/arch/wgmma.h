// wgmma.mma_async as data: D[64,n] = A[64,k] B[n,k] + D by a warpgroup (PTX ISA, "Asynchronous
// Warpgroup Level Matrix Multiply-Accumulate Instructions").
//
// Layouts map (thread of the warpgroup, element of its registers) to one integer, first axis
// fastest: m + 64 k for A, m + 64 n for the accumulators. Elements that share a 32-bit register are
// neighbours of the register mode. B is always in shared memory (arch/shared_tile.h), A may be.
#pragma once

#include "arch/element.h"
#include "arch/instruction.h"
#include "arch/mma.h"
#include "layout/layout.h"

namespace tessera::arch {

struct Wgmma {
  Element a = Element::bf16, b = Element::bf16, c = Element::f32;
  Feed a_from = Feed::shared;
  int64_t n = 0;
  bool saturating = false;  // of integers: sums are clamped to s32

  static constexpr int threads = 128;
  static constexpr int64_t m = 64;
  /// 32 bytes of a row of A.
  [[nodiscard]] int64_t k() const { return 32 / bytes_of(a); }
  /// A and B may also be contiguous in m and n: of 16-bit elements alone, and A in shared memory.
  [[nodiscard]] bool may_transpose() const { return bytes_of(a) == 2; }
  /// Elements of the operand in one 32-bit register.
  [[nodiscard]] int64_t a_per_register() const { return 4 / bytes_of(a); }
  [[nodiscard]] int64_t c_per_register() const { return c == Element::f16 ? 2 : 1; }
  /// 32-bit registers of the accumulators in one thread.
  [[nodiscard]] int64_t c_registers() const { return m * n / threads / c_per_register(); }

  /// A's elements in registers; the same places in shared memory have no layout of threads.
  [[nodiscard]] Layout a_layout() const;
  [[nodiscard]] Layout c_layout() const;

  [[nodiscard]] const Form& form() const;
  [[nodiscard]] Choices choices() const { return {{"n", std::to_string(n)}}; }
};

/// The legal n: 8, 16, ..., 256; of 8-bit integers 8, 16, 24, 32 and then multiples of 16.
std::vector<int64_t> wgmma_widths(Element a);
/// Fails, with what there is, when no such instruction exists.
Result<Wgmma> wgmma(Element a, Element b, Element c, Feed a_from, int64_t n,
                    bool saturating = false);
/// Every combination of operand types, accumulators and source of A, at n = 8.
std::vector<Wgmma> wgmma_kinds();

}  // namespace tessera::arch
