/* What the self-test's driver and its GEMM instances (one per object file) agree on. */
#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace split_test {

struct GemmCall {
  int m, n, k, batches;
  float const* a;  // packed, or plain and k-major for an inline instance
  int64_t a_row_stride, a_batch_stride;
  float const* b;  // packed, or plain for an inline instance
  int64_t b_row_stride, b_batch_stride;  // inline with B n-major: the stride of k
  float const* c;                        // row-major, the strides of d; null without C
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
  bool plain_operands, plain_b_k_major;  // the inline mainloop
  int shared_bytes;
  size_t (*workspace_bytes)(GemmCall const&);
  /// Null on success, else what failed.
  char const* (*run)(GemmCall const&, void* workspace, cudaStream_t);
};

}  // namespace split_test
