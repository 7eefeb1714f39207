// What a kernel is to compute: for now a product, C[i, j] = sum over k of A[i, k] * B[j, k].
#pragma once

#include "core/kernel.h"

namespace tessera::check {

/// The dimensions of each tensor that are i, j and k.
struct Means {
  core::TensorId a, b, c;
  int a_i = 0, a_k = 1;
  int b_j = 0, b_k = 1;
  int c_i = 0, c_j = 1;
};

}  // namespace tessera::check
