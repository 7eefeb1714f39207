// What a kernel is to compute: a product, C[i, j] = sum over k of A[i, k] * B[j, k].
#pragma once

#include "core/kernel.h"

namespace tessera::check {

inline constexpr Code bad_meaning{"TS0878", "check.bad_meaning"};

/// The dimensions of each tensor that are i, j and k.
struct Means {
  core::TensorId a, b, c;
  int a_i = 0, a_k = 1;
  int b_j = 0, b_k = 1;
  int c_i = 0, c_j = 1;
};

/// Kernel::means taken apart: "C[i, j] = sum(A[i, k] * B[j, k], k)", with the kernel's tensors and
/// any names for i, j and k, in any order of the dimensions. Nothing where the kernel says nothing.
/// TS0878 for a text of another form.
Result<std::optional<Means>> means_of(const core::Kernel& kernel);

}  // namespace tessera::check
