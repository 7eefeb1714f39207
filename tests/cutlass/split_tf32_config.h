/* What the self-test's driver and its GEMM instances (one per object file) agree on. */
#pragma once
#include <cstddef>
#include <cstdint>
#include <cuda_runtime.h>

namespace split_test {

struct GemmCall {
  int m, n, k, batches;
  // Operands: packed or, for an inline instance, plain; where rows are contiguous the stride is
  // that of k.
  float const* a;
  int64_t a_row_stride, a_batch_stride;
  float const* b;
  int64_t b_row_stride, b_batch_stride;
  float const* c;  // row-major, the strides of d; null without C
  float* d;
  int64_t d_row_stride, d_batch_stride;
  float alpha, beta;
  float const* bias;  // [n], for the instance with a visitor tree
  int swizzle;        // 1, 2, 4, 8
  bool raster_along_m;
};

struct GemmInstance {
  char const* name;
  bool has_c, has_bias_relu;
  bool plain_operands, plain_a_k_major, plain_b_k_major;  // the inline mainloop
  int shared_bytes;
  size_t (*workspace_bytes)(GemmCall const&);
  /// Null on success, else what failed.
  char const* (*run)(GemmCall const&, void* workspace, cudaStream_t);
};

}  // namespace split_test
