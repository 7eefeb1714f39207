// clang-format off
/* The packed operand of the split-tf32 GEMM. No CUTLASS here.
 *
 * An fp32 matrix X[rows, k] becomes one fp32 array in which every group of 16 consecutive k of a
 * row is stored as 16 high parts followed by their 16 low parts (128 bytes, one swizzle line of a
 * TMA tile):
 *
 *   packed[row][k / 16 * 32 +      k % 16] = hi(x)     x rounded to tf32 (11 significant bits)
 *   packed[row][k / 16 * 32 + 16 + k % 16] = lo(x)     x - hi, cut to tf32
 *
 * so that a single TMA box of 32 columns brings both parts of 16 k. K is padded with zeros to a
 * multiple of 16: any K and any source alignment will do. Both parts are exact tf32 values in fp32
 * storage, and hi + lo = x up to one unit in the last place (for |x| above about 1e-31; below that
 * the low part is subnormal and may be lost).
 */
// clang-format on
#pragma once
#include <cstdint>

#ifdef __CUDACC__
#define TESSERA_SPLIT_HD __host__ __device__ __forceinline__
#else
#define TESSERA_SPLIT_HD inline
#endif

namespace tessera {

inline constexpr int kSplitGroup = 16;                    // k values of one group
inline constexpr int kSplitGroupWidth = 2 * kSplitGroup;  // packed fp32 elements of one group

/// Elements of one packed row: 2 * (k rounded up to 16).
TESSERA_SPLIT_HD constexpr int64_t split_row_elements(int64_t k) {
  return (k + kSplitGroup - 1) / kSplitGroup * kSplitGroupWidth;
}

/// Elements (fp32) of the packed form of `batches` matrices of [rows, k].
TESSERA_SPLIT_HD constexpr int64_t split_packed_elements(int64_t rows, int64_t k, int64_t batches) {
  return batches * rows * split_row_elements(k);
}

namespace split_detail {
struct Parts {
  float hi, lo;
};
}  // namespace split_detail

}  // namespace tessera
