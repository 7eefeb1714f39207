// Parts of a product's columns with an epilogue of their own, among them pairs of columns: rotary
// embedding inside the product that makes queries and keys.
//
// A block's tile lies in one part. Before the tile is stored, the part's function changes the
// accumulators in registers: a thread has the same two columns of each 8, so that the columns c and
// c + period / 2 of a row are in one thread when period / 2 is a multiple of 8. Operands come from
// global memory, two adjacent columns a load, and those of several pairs are asked for before the
// first is used.
#pragma once

#include "tessera_wgmma/operands.h"

#if TESSERA_DEVICE_SIDE
namespace tessera_wgmma {

// Two neighbouring elements as they are loaded, and the value of the first or second.

template <class T>
struct TwoOf;
template <>
struct TwoOf<float> {
  using Type = float2;
};
template <>
struct TwoOf<__nv_bfloat16> {
  using Type = __nv_bfloat162;
};
template <>
struct TwoOf<__half> {
  using Type = __half2;
};

template <int I>
__device__ __forceinline__ float element(float2 x) {
  return I == 0 ? x.x : x.y;
}
template <int I>
__device__ __forceinline__ float element(__nv_bfloat162 x) {
  return value(I == 0 ? x.x : x.y);
}
template <int I>
__device__ __forceinline__ float element(__half2 x) {
  return value(I == 0 ? x.x : x.y);
}
/// One element for all columns.
template <int I, class T>
__device__ __forceinline__ float element(T x) {
  return value(x);
}

/// Element (row, group, column). `Repeats`: the operand has fewer rows than the result.
template <class T, bool Repeats>
__device__ __forceinline__ const T* place(const PartOperand& x, int row, int group, int column) {
  if constexpr (Repeats) row = static_cast<int>(static_cast<uint32_t>(row) % x.rows);
  return static_cast<const T*>(x.data) + row * x.ld + group * x.distance + column;
}
/// Elements side by side, the first at a multiple of both.
template <class T>
__device__ __forceinline__ typename TwoOf<T>::Type pair(const T* at) {
  return *reinterpret_cast<const typename TwoOf<T>::Type*>(at);
}
template <class T>
__device__ __forceinline__ typename TwoOf<T>::Type side_by_side(const T* at) {
  return {at[0], at[1]};
}

/// How many pairs' operands are asked for at once: the most of up to 64 registers that divide them.
/// `bytes`: of one pair's.
__device__ constexpr int at_once(int pairs, std::size_t bytes) {
  int most = bytes == 0 ? pairs : 256 / static_cast<int>(bytes);
  if (most > pairs) most = pairs;
  while (most > 1 && pairs % most != 0) --most;
  return most < 1 ? 1 : most;
}
template <class T>
constexpr std::size_t size_of = sizeof(T) > 1 ? sizeof(T) : 0;  // 1 of one without members

/// Applies `Part` to a warpgroup's accumulators, where the tile at (row, column) is of that part.
/// Rows beyond the last read its operands, and are not stored.
template <class C, class Part>
__device__ __forceinline__ void apply_part(const Params<C>& p, const PartColumns& of,
                                           float (&acc)[Derived<C>::row_blocks][C::columns / 2],
                                           int row, int column, int thread) {
  using D = Derived<C>;
  static_assert(C::products == 1, "the accumulators are those of the columns");
  constexpr int period = Part::period == 0 ? D::result_columns : Part::period;
  constexpr int half = Part::period == 0 ? period : period / 2;
  constexpr int groups = D::result_columns / period;
  static_assert(D::result_columns % period == 0 && half % 8 == 0,
                "columns that belong together meet in one thread");
  constexpr int of_row = half / 8;  // pairs, of each group
  constexpr int batch =
      at_once(2 * of_row, size_of<typename Part::Shared> + groups * size_of<typename Part::Own>);
  if (column < of.first || column >= of.end) return;
  const int lane = thread % 32;
  const int first_row = row + thread / 32 * 16 + lane / 4, last_row = p.m - 1;
  const int begin = column - of.first;
  const int group = Part::period == 0 ? 0 : begin / period;
  const int first_column = (Part::period == 0 ? begin : 0) + 2 * (lane % 4);
#pragma unroll
  for (int i = 0; i < D::row_blocks; ++i) {
#pragma unroll
    for (int first = 0; first < 2 * of_row; first += batch) {
      if (first + i > 0) __syncwarp();  // ptxas would ask for everything at once, and spill
      typename Part::Shared shared[batch];
#pragma unroll
      for (int q = 0; q < batch; ++q) {
        const int h = (first + q) / of_row, j = (first + q) % of_row;
        shared[q] =
            Part::shared(p, min(first_row + 64 * i + 8 * h, last_row), first_column + 8 * j);
      }
#pragma unroll
      for (int q = 0; q < batch; ++q) {
        const int h = (first + q) / of_row, j = (first + q) % of_row;
#pragma unroll
        for (int g = 0; g < groups; ++g) {
          const auto own = Part::own(p, min(first_row + 64 * i + 8 * h, last_row), group + g,
                                     first_column + 8 * j);
          const int low = 4 * (g * (period / 8) + j) + 2 * h;
          const int high = Part::period == 0 ? low : low + half / 2;
          Part::template apply<0>(shared[q], own, acc[i][low], acc[i][high]);
          Part::template apply<1>(shared[q], own, acc[i][low + 1], acc[i][high + 1]);
        }
      }
    }
  }
}

}  // namespace tessera_wgmma
#endif  // TESSERA_DEVICE_SIDE
