// A matrix product as the core has it, for tests: C[M,N] = A[M,K] B[N,K]^T of 16-bit elements, both
// operands with k contiguous, summed in float32. One warpgroup loads by TMA into a ring, the others
// multiply by wgmma; the blocks are persistent; results leave through stmatrix and TMA stores.
//
// In clusters of two, the blocks have tiles one above the other: each loads its own A, and half of
// B for both. Or they lie side by side and share A.
//
// Operands of 8 bits (float8_e4m3fn) have bk = 128.
#pragma once

#include "core/kernel.h"

namespace tessera::core::testing {

struct GemmShape {
  int64_t bm = 128;  // rows of a tile, 64 a consumer warpgroup
  int64_t bn = 256;  // columns, a multiple of 64 and at most 256
  int64_t bk = 64;   // of 16 bits 16, 32 or 64: the operands' rows fill a swizzle's width
  int stages = 4;
  int band = 8;  // clusters' rows of tiles that are taken together in the raster
  DType element = DType::bfloat16;
  DType result = DType::bfloat16;  // of 8-bit operands; of others the result is of their type
  int cluster = 1;                 // blocks: 1 or 2
  bool beside = false;             // the blocks of a cluster lie side by side
  int buffers = 2;  // of 64 x 64 results that wait for their store, a consumer warpgroup
  [[nodiscard]] int consumers() const { return static_cast<int>(bm / 64); }
  /// M, N and K are parameters of the launch, multiples of 8, K of 16 bytes.
};

Result<Kernel> gemm(const GemmShape& s = {});

}  // namespace tessera::core::testing
