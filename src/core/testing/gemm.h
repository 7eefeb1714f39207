// A matrix product as the core has it, for tests: C[M,N] = A[M,K] B[N,K]^T of 16-bit elements, both
// operands with k contiguous, summed in float32. One warpgroup loads by TMA into a ring, the others
// multiply by wgmma; the blocks are persistent; results leave through stmatrix and TMA stores.
#pragma once

#include "core/kernel.h"

namespace tessera::core::testing {

struct GemmShape {
  int64_t bm = 128;  // rows of a tile, 64 a consumer warpgroup
  int64_t bn = 256;  // columns, a multiple of 64 and at most 256
  int64_t bk = 64;   // 16, 32 or 64: the operands' rows fill a swizzle's width
  int stages = 4;
  int band = 8;  // tiles of rows that are taken together in the raster
  DType element = DType::bfloat16;
  [[nodiscard]] int consumers() const { return static_cast<int>(bm / 64); }
  /// M, N and K are parameters of the launch, multiples of 8.
};

Result<Kernel> gemm(const GemmShape& s = {});

}  // namespace tessera::core::testing
