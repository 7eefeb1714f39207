// Kernel files: Python syntax, elaborated into a kernel of the core.
//
// clang-format off
//   from tessera.language import *
//
//   @kernel
//   def gemm(M: index(multiple=8), ..., A: Tensor[bf16, "M", "K"], BM: const = 128, ...):
//       a = shared(bf16, [STAGES, BM, BK], swizzle=128)
//       full = barrier(STAGES, arrivals=1)
//       with role("producer", warpgroups=1, registers=40), one_thread():
//           for m, n in tiles(M, BM, N, BN, group=8):
//               for k in ring(K, BK, STAGES):
//                   ...
// clang-format on
//
// Elaboration is partial evaluation: what is known is computed (constants, shapes, calls of
// functions), what the machine does becomes ops of the core, in the order of the text.
// docs/language.md is the reference. The core's verifier and checker judge what comes out.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <variant>

#include "core/kernel.h"

namespace tessera::language {

inline constexpr Code no_such_name{"TS0826", "language.no_such_name"};
inline constexpr Code wrong_call{"TS0827", "language.wrong_call"};
inline constexpr Code wrong_kind{"TS0828", "language.wrong_kind"};
inline constexpr Code wrong_shape{"TS0829", "language.wrong_shape"};
inline constexpr Code not_constant{"TS0830", "language.not_constant"};
inline constexpr Code assertion{"TS0831", "language.assertion"};
inline constexpr Code wrong_place{"TS0832", "language.wrong_place"};
inline constexpr Code recursion{"TS0833", "language.recursion"};
inline constexpr Code no_layout{"TS0834", "language.no_layout"};
inline constexpr Code no_instruction{"TS0835", "language.no_instruction"};
inline constexpr Code bad_constant{"TS0836", "language.bad_constant"};
inline constexpr Code wrong_arrivals{"TS0837", "language.wrong_arrivals"};
inline constexpr Code stale_value{"TS0838", "language.stale_value"};
inline constexpr Code wrong_ring{"TS0839", "language.wrong_ring"};

/// A whole number, or a text: a number with a point ("0.5"), or the name of an element type
/// ("f16"), of a function of the file or of single elements ("relu").
using Constant = std::variant<int64_t, std::string>;

struct Options {
  std::map<std::string, Constant> constants;  // by the kernel's parameter; others have defaults
  /// What the kernel computes with these constants and functions, in place of what `means` of
  /// `@kernel` says; empty: that.
  std::string means = {};
};

/// The kernel of that name. Errors: TS0801 to TS0804 of the syntax, TS0826 to TS0839 of the
/// language, each with its place in the text.
Result<core::Kernel> elaborate(const Source& source, std::string_view kernel,
                               const Options& options = {});

}  // namespace tessera::language
