// CUTLASS' mainloops over operands whose rows or K do not have one stride: the same collective with
// modes of two strides in the problem, in its tile and in its strides. The tensor map gets one more
// dim, everything behind shared memory stays.
#pragma once

#include "tessera_cutlass/sm90.hpp"

namespace tessera {

/// The collective `Flat` with another shape of the tile (of equal size) and other strides.
template <class Flat, class Tile, class StrideA, class StrideB>
struct Restrided;
template <class Policy, class FlatTile, class EA, class SA, class EB, class SB, class... Rest,
          class Tile, class StrideA, class StrideB>
struct Restrided<
    cutlass::gemm::collective::CollectiveMma<Policy, FlatTile, EA, SA, EB, SB, Rest...>, Tile,
    StrideA, StrideB> {
  static_assert(cute::size(FlatTile{}) == cute::size(Tile{}));
  using CollectiveOp =
      cutlass::gemm::collective::CollectiveMma<Policy, Tile, EA, StrideA, EB, StrideB, Rest...>;
};

/// K slices that alternate: K = (BK, rounds), slice s of round r starts at (r * slices + s) * BK.
/// Slices that run at the same time then read neighbouring memory.
template <class Flat, class Tile>
struct InterleavedMainloop {
  template <class Stride>
  using Alternating =
      decltype(cute::replace<1>(Stride{}, cute::make_stride(cute::get<1>(Stride{}), int64_t{})));
  using CollectiveOp = typename Restrided<Flat, Tile, Alternating<typename Flat::StrideA>,
                                          Alternating<typename Flat::StrideB>>::CollectiveOp;
};

template <class Stride>
Stride interleaved_stride(int64_t ld, int64_t slices, int64_t block_k) {
  Stride s{};
  int64_t k = 1;
  if constexpr (cute::is_static_v<decltype(cute::get<1, 0>(s))>) {
    cute::get<0>(s) = ld;
  } else {
    cute::get<1, 0>(s) = k = ld;
  }
  cute::get<1, 1>(s) = slices * block_k * k;
  cute::get<2>(s) = block_k * k;
  return s;
}

}  // namespace tessera
