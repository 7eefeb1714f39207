// Matrix instructions as data: D[m,n] = A[m,k] B[n,k] + C[m,n] by a group of threads, and which
// register of which thread holds which element.
//
// A layout maps (thread, register element) to one integer, first axis fastest, as CuTe's traits do:
// m + M * k for A, n + N * k for B, m + M * n for C. Elements that share a 32-bit register are
// neighbours of the register mode. Everything that lowers, executes or checks a product reads these
// records; a new instruction is a new record. Products of a warpgroup are in arch/wgmma.h.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "arch/element.h"
#include "layout/layout.h"
#include "numeric/dtype.h"

namespace tessera::arch {

struct Form;  // arch/instruction.h

/// Where an operand is read from.
enum class Feed : uint8_t { registers, shared };

struct Mma {
  std::string_view name;        // "m16n8k8.tf32": names the emitted helper, too
  std::string_view ptx;         // the PTX instruction, without operands
  std::string_view capability;  // of the architecture that has it
  int threads = 32;
  int64_t m = 0, n = 0, k = 0;
  Precision operands = Precision::tf32;  // what A and B are rounded to
  int per_register = 1;                  // elements of A or B in one 32-bit register
  Feed a_from = Feed::registers, b_from = Feed::registers;
  Layout a, b, c;
};

/// mma.sync.m16n8k<k>: every kind of 8-, 16- and 32-bit operands (PTX ISA, "Matrix Fragments for
/// mma.m16n8k4 / k8 / k16 / k32").
struct MmaSync {
  Element a = Element::bf16, b = Element::bf16, c = Element::f32;
  int64_t k = 16;
  bool saturating = false;  // of integers: sums are clamped to s32

  static constexpr int64_t threads = 32, m = 16, n = 8;
  /// Elements of A or B in one 32-bit register.
  [[nodiscard]] int64_t per_register() const { return 4 / bytes_of(a); }
  [[nodiscard]] Layout a_layout() const;
  [[nodiscard]] Layout b_layout() const;
  [[nodiscard]] static Layout c_layout();
  [[nodiscard]] const Form& form() const;
};
std::vector<MmaSync> mma_sync_kinds();

/// Those that the tile language emits, of sm_80 and later (PTX ISA, "Matrix Fragments for
/// mma.m16n8k8 / .m16n8k16").
std::span<const Mma> mma_sync();
/// By name among all records; nullptr when there is none.
const Mma* find_mma(std::string_view name);

}  // namespace tessera::arch
