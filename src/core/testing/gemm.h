// A matrix product as the core has it, for tests: C[M,N] = A[M,K] B[N,K]^T of 16-bit elements, both
// operands with k contiguous, summed in float32. One warpgroup loads by TMA into a ring, the others
// multiply by wgmma; the blocks are persistent; results leave through stmatrix and TMA stores.
//
// In clusters of two, the blocks have tiles one above the other: each loads its own A, and half of
// B for both. Or they lie side by side and share A.
//
// Operands of 8 bits (float8_e4m3fn) have bk = 128.
//
// Operands may have m or n contiguous, tensors a batch in front, and results may be a function of
// the sums and of other tensors. Kernel::means says what the kernel computes.
#pragma once

#include "core/kernel.h"

namespace tessera::core::testing {

/// What becomes of a sum on its way out. X0 is of float32, [N] or [L, 1, N]; X1 is as C.
enum class Epilogue : uint8_t {
  none,
  relu,      // relu(sum * -0.5)
  bias,      // sum + X0[j]
  residual,  // relu(sum * 0.5 + X0[j]) + X1[i, j]
};

struct GemmShape {
  int64_t bm = 128;  // rows of a tile, 64 a consumer warpgroup
  int64_t bn = 256;  // columns, a multiple of 64 and at most 256
  int64_t bk = 64;   // of 16 bits 16, 32 or 64: the operands' rows fill a swizzle's width
  int stages = 4;
  int band = 8;  // clusters' rows of tiles that are taken together in the raster
  DType element = DType::bfloat16;
  DType result = DType::bfloat16;  // of 8-bit operands, and of direct stores
  int cluster = 1;                 // blocks: 1 or 2
  bool beside = false;             // the blocks of a cluster lie side by side
  int buffers = 2;       // of 64 x 64 results that wait for their store, a consumer warpgroup
  bool batched = false;  // a dimension L in front
  bool one_a = false;    // of all batches: A has no dimension of batches
  bool one_b = false;    // of all batches: B has one batch
  bool a_rows = false;   // A has m contiguous
  bool b_rows = false;   // B has n contiguous
  Epilogue epilogue = Epilogue::none;
  bool direct = false;  // results leave from registers, by stores of each thread
  bool early = false;   // it may start before the grids before it have ended
  bool drains =
      false;         // the producer waits until a cluster has left its slots; else all threads meet
  bool two = false;  // D has the sums themselves beside C; direct stores alone
  /// A and B are tagged: `row`, `column` and `k`. It is asserted that operands have one k, and that
  /// sums have their rows and columns.
  bool tagged = false;
  [[nodiscard]] int consumers() const { return static_cast<int>(bm / 64); }
  /// M, N and K are parameters of the launch, multiples of 8, K of 16 bytes.
};

Result<Kernel> gemm(const GemmShape& s = {});

}  // namespace tessera::core::testing
