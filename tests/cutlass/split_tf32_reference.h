/* Operands, an fp64 reference and cuBLAS fp32 for the split-tf32 self-test. */
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cublas_v2.h>
#include <cuda_runtime.h>

namespace split_test {

#define SPLIT_CHECK(call)                                                       \
  do {                                                                          \
    auto const status_ = (call);                                                \
    if (static_cast<int>(status_) != 0) {                                       \
      std::printf("%s:%d: %s = %d\n", __FILE__, __LINE__, #call, int(status_)); \
      std::exit(2);                                                             \
    }                                                                           \
  } while (0)

/// D[l, m, n] = alpha * sum_k A B + beta * C, then bias and relu. Strides in elements.
struct Problem {
  int m, n, k, batches;
  bool a_k_major, b_k_major;  // else M-major, N-major
  int64_t a_rows_stride, a_k_stride, a_batch_stride;
  int64_t b_rows_stride, b_k_stride, b_batch_stride;
  int64_t d_row_stride, d_batch_stride;
};

inline Problem make_problem(int m, int n, int k, int batches, bool a_k_major, bool b_k_major,
                            bool share_b = false, int d_padding = 0) {
  Problem p{m, n, k, batches, a_k_major, b_k_major};
  p.a_rows_stride = a_k_major ? k : 1;
  p.a_k_stride = a_k_major ? 1 : m;
  p.a_batch_stride = int64_t{m} * k;
  p.b_rows_stride = b_k_major ? k : 1;
  p.b_k_stride = b_k_major ? 1 : n;
  p.b_batch_stride = share_b ? 0 : int64_t{n} * k;
  p.d_row_stride = n + d_padding;
  p.d_batch_stride = m * p.d_row_stride;
  return p;
}

template <class T>
T* device_array(int64_t elements) {
  T* data = nullptr;
  SPLIT_CHECK(cudaMalloc(&data, elements * sizeof(T)));
  return data;
}

__device__ inline uint32_t hash(uint64_t x) {
  x = (x ^ (x >> 31)) * 0x7fb5d329728ea185ull;
  x = (x ^ (x >> 27)) * 0x81dadef4bc2dd44dull;
  return static_cast<uint32_t>(x ^ (x >> 33));
}

/// Normal with mean 0, or uniform in [0, 1).
__global__ void fill_random(float* data, int64_t count, uint64_t seed, bool positive) {
  int64_t const step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < count; i += step) {
    float const u = (hash(2 * i + (seed << 40)) + 0.5f) * 2.3283064e-10f;
    float const v = (hash(2 * i + 1 + (seed << 40)) + 0.5f) * 2.3283064e-10f;
    data[i] = positive ? u : sqrtf(-2.f * logf(fminf(u, 0.9999999f))) * cospif(2.f * v);
  }
}

inline float* random_array(int64_t count, uint64_t seed, bool positive = false) {
  float* data = device_array<float>(count);
  fill_random<<<1024, 256>>>(data, count, seed, positive);
  SPLIT_CHECK(cudaGetLastError());
  return data;
}

struct ReferenceInputs {
  float const *a, *b, *c, *bias;  // c and bias may be null
  double alpha, beta;
};

/// 64 x 64 of one batch per block, 4 x 4 per thread; `out` is [batches, m, n] without padding.
__global__ void reference_gemm(Problem p, ReferenceInputs in, double* out) {
  __shared__ float tile_a[16][65], tile_b[16][65];
  int const tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  int const row0 = blockIdx.y * 64, col0 = blockIdx.x * 64, batch = blockIdx.z;
  float const* a = in.a + batch * p.a_batch_stride;
  float const* b = in.b + batch * p.b_batch_stride;
  double sum[4][4] = {};
  for (int k0 = 0; k0 < p.k; k0 += 16) {
    for (int i = threadIdx.x; i < 1024; i += 256) {
      int const ka = p.a_k_major ? i % 16 : i / 64, ra = p.a_k_major ? i / 16 : i % 64;
      int const kb = p.b_k_major ? i % 16 : i / 64, rb = p.b_k_major ? i / 16 : i % 64;
      bool const has_a = k0 + ka < p.k && row0 + ra < p.m;
      bool const has_b = k0 + kb < p.k && col0 + rb < p.n;
      tile_a[ka][ra] = has_a ? a[(row0 + ra) * p.a_rows_stride + (k0 + ka) * p.a_k_stride] : 0.f;
      tile_b[kb][rb] = has_b ? b[(col0 + rb) * p.b_rows_stride + (k0 + kb) * p.b_k_stride] : 0.f;
    }
    __syncthreads();
    for (int k = 0; k < 16 && k0 + k < p.k; ++k) {
      double x[4], y[4];
      for (int i = 0; i < 4; ++i) x[i] = tile_a[k][ty + 16 * i];
      for (int j = 0; j < 4; ++j) y[j] = tile_b[k][tx + 16 * j];
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) sum[i][j] += x[i] * y[j];
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      int const row = row0 + ty + 16 * i, col = col0 + tx + 16 * j;
      if (row >= p.m || col >= p.n) continue;
      double d = in.alpha * sum[i][j];
      if (in.c) d += in.beta * in.c[batch * p.d_batch_stride + row * p.d_row_stride + col];
      if (in.bias) d = fmax(d + in.bias[col], 0.0);
      out[(int64_t{batch} * p.m + row) * p.n + col] = d;
    }
}

inline void run_reference(Problem const& p, ReferenceInputs const& in, double* out) {
  dim3 const grid((p.n + 63) / 64, (p.m + 63) / 64, p.batches);
  reference_gemm<<<grid, 256>>>(p, in, out);
  SPLIT_CHECK(cudaGetLastError());
}

/// sums: square of ref, square of d - ref, elements where only one of the two is finite.
__global__ void compare(Problem p, float const* d, double const* ref, double* sums) {
  double square = 0, error = 0, odd = 0;
  int64_t const count = int64_t{p.batches} * p.m * p.n, step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < count; i += step) {
    int64_t const row = i / p.n;
    float const x = d[row / p.m * p.d_batch_stride + row % p.m * p.d_row_stride + i % p.n];
    if (isfinite(x) != isfinite(ref[i])) odd += 1;
    if (!isfinite(x) || !isfinite(ref[i])) continue;
    square += ref[i] * ref[i];
    error += (x - ref[i]) * (x - ref[i]);
  }
  atomicAdd(sums, square);
  atomicAdd(sums + 1, error);
  atomicAdd(sums + 2, odd);
}

struct Comparison {
  double rms;        // relative, over the elements finite in both
  int64_t mismatch;  // elements where only one is finite
};

inline Comparison compare_to(Problem const& p, float const* d, double const* ref) {
  double* sums = device_array<double>(3);
  double host[3];
  SPLIT_CHECK(cudaMemset(sums, 0, sizeof(host)));
  compare<<<512, 256>>>(p, d, ref, sums);
  SPLIT_CHECK(cudaMemcpy(host, sums, sizeof(host), cudaMemcpyDeviceToHost));
  SPLIT_CHECK(cudaFree(sums));
  return {std::sqrt(host[1] / host[0]), static_cast<int64_t>(host[2])};
}

/// Elements of the padding right of each row of d that no longer hold the poison (all bits set).
__global__ void damaged_padding(Problem p, float const* d, int* count) {
  int64_t const row = blockIdx.x, col = p.n + threadIdx.x;
  if (col >= p.d_row_stride) return;
  float const x = d[row / p.m * p.d_batch_stride + row % p.m * p.d_row_stride + col];
  if (__float_as_uint(x) != 0xffffffffu) atomicAdd(count, 1);
}

inline int count_damaged_padding(Problem const& p, float const* d) {
  int* count = device_array<int>(1);
  int host = 0;
  SPLIT_CHECK(cudaMemset(count, 0, sizeof(int)));
  damaged_padding<<<p.batches * p.m, 32>>>(p, d, count);
  SPLIT_CHECK(cudaMemcpy(&host, count, sizeof(int), cudaMemcpyDeviceToHost));
  SPLIT_CHECK(cudaFree(count));
  return host;
}

/// D = alpha A B + beta D in IEEE fp32, as the column-major product D^T = B^T A^T.
inline void run_cublas(cublasHandle_t handle, Problem const& p, float const* a, float const* b,
                       float* d, float alpha, float beta) {
  auto const op_b = p.b_k_major ? CUBLAS_OP_T : CUBLAS_OP_N;
  auto const op_a = p.a_k_major ? CUBLAS_OP_N : CUBLAS_OP_T;
  int64_t const ld_b = p.b_k_major ? p.b_rows_stride : p.b_k_stride;
  int64_t const ld_a = p.a_k_major ? p.a_rows_stride : p.a_k_stride;
  SPLIT_CHECK(cublasGemmStridedBatchedEx(
      handle, op_b, op_a, p.n, p.m, p.k, &alpha, b, CUDA_R_32F, static_cast<int>(ld_b),
      p.b_batch_stride, a, CUDA_R_32F, static_cast<int>(ld_a), p.a_batch_stride, &beta, d,
      CUDA_R_32F, static_cast<int>(p.d_row_stride), p.d_batch_stride, p.batches, CUBLAS_COMPUTE_32F,
      CUBLAS_GEMM_DEFAULT));
}

}  // namespace split_test
