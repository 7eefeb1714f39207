// CUTLASS' mainloop with A from registers, for an M-major A of 4-byte elements, on shared memory
// rows of 128 bytes.
//
// wgmma reads 4-byte operands along K only, so an M-major A comes through registers. CUTLASS stages
// such a tile in shared memory rows of 32 bytes, 8 rows of A each, since lanes read those without
// bank conflicts; TMA then moves 32 bytes at a time and asks L2 twice as often. With rows of 128
// bytes the conflicts go away by the order of A's rows (row_order.h).
//
// 4096 x 4096 x 4096 in tf32 with an N-major B, sustained on an H200 at its 700 W: 22 million
// requests to L2 instead of 47, 1527 instead of 1463 MHz, 0.398 instead of 0.418 ms.
#pragma once

#include "tessera_cutlass/row_order.h"
#include "tessera_cutlass/sm90.hpp"

namespace tessera {

/// The collective `Built` on wide rows. Its TiledMma's accumulators are for rows in RowOrder.
template <class Built>
struct WideRows;
template <int Stages, class Cluster, class Schedule, class Tile, class StrideA, class StrideB,
          class Atom, class AtomLayout, class Permutation, class CopyA, class RowsA, class LoadA,
          class... Rest>
struct WideRows<cutlass::gemm::collective::CollectiveMma<
    cutlass::gemm::MainloopSm90TmaGmmaRmemAWarpSpecialized<Stages, Cluster, Schedule>, Tile, float,
    StrideA, float, StrideB, cute::TiledMMA<Atom, AtomLayout, Permutation>, CopyA, RowsA, LoadA,
    Rest...>> {
  static constexpr int warpgroups = cute::size<0>(AtomLayout{});
  static_assert(cute::size<0>(Tile{}) % (64 * warpgroups) == 0);
  static_assert(cutlass::gemm::detail::is_major<0, StrideA>(), "wgmma reads a K-major A itself");
  using TiledMma =
      cute::TiledMMA<Atom, AtomLayout,
                     cute::Tile<RowOrder<warpgroups>, cute::Underscore, cute::Underscore>>;
  using CollectiveOp = cutlass::gemm::collective::CollectiveMma<
      cutlass::gemm::MainloopSm90TmaGmmaRmemAWarpSpecialized<Stages, Cluster, Schedule>, Tile,
      float, StrideA, float, StrideB, TiledMma, CopyA,
      cute::GMMA::Layout_MN_SW128_Atom<cutlass::tfloat32_t>, cute::Copy_Atom<LoadRowPair, float>,
      Rest...>;
};

}  // namespace tessera
