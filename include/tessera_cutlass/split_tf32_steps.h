/* What both split-tf32 mainloops do alike: fill stages by TMA, and issue the three products of a
 * stage. */
#pragma once
#include "cute/algorithm/gemm.hpp"
#include "cute/arch/cluster_sm90.hpp"
#include "cute/arch/copy_sm90.hpp"
#include "cute/tensor.hpp"
#include "cutlass/cutlass.h"
#include "tessera_cutlass/split_tf32_layout.h"

namespace tessera::split_detail {

/// Where a producer is: its block's tile, its k tiles, its rank in the cluster.
template <class BlockCoord, class KTileIterator>
struct ProducerWork {
  BlockCoord const& block;
  KTileIterator k_tile;
  int k_tile_count;
  uint32_t rank_in_cluster;
};

/// Run by one thread. `inputs` are the tiled TMA tensors (BM, width, m, k, l) and (BN, width, n, k,
/// l), smem_a and smem_b (BM or BN, width, stage). An A tile serves the blocks of one cluster row
/// and a B tile those of one column; where that is more than one block each of them loads its
/// share.
template <class ClusterShape, class TmaA, class TmaB, class Inputs, class SmemA, class SmemB,
          class Pipeline, class PipelineState, class BlockCoord, class KTileIterator>
CUTLASS_DEVICE void fill_stages(TmaA const& tma_a, TmaB const& tma_b, Inputs const& inputs,
                                SmemA const& smem_a, SmemB const& smem_b, Pipeline& pipeline,
                                PipelineState write, ProducerWork<BlockCoord, KTileIterator> work) {
  using namespace cute;
  constexpr int kClusterM = size<0>(ClusterShape{}), kClusterN = size<1>(ClusterShape{});
  auto const [m, n, unused, l] = work.block;
  auto const cluster = Layout<ClusterShape>{};
  int const my_m = work.rank_in_cluster % kClusterM, my_n = work.rank_in_cluster / kClusterM;

  auto const slice_a = tma_a.get_slice(my_n);
  auto const slice_b = tma_b.get_slice(my_m);
  Tensor from_a = slice_a.partition_S(get<0>(inputs)(_, _, m, _, l));
  Tensor from_b = slice_b.partition_S(get<1>(inputs)(_, _, n, _, l));
  Tensor to_a = slice_a.partition_D(smem_a);
  Tensor to_b = slice_b.partition_D(smem_b);

  uint16_t mask_a = 0, mask_b = 0;
  if constexpr (kClusterN > 1) {
    for (int j = 0; j < kClusterN; ++j) mask_a |= 1 << cluster(my_m, j, _0{});
  }
  if constexpr (kClusterM > 1) {
    for (int i = 0; i < kClusterM; ++i) mask_b |= 1 << cluster(i, my_n, _0{});
  }
  CUTLASS_PRAGMA_NO_UNROLL
  for (int left = work.k_tile_count; left > 0; --left, ++work.k_tile, ++write) {
    pipeline.producer_acquire(write);
    auto* full = pipeline.producer_get_barrier(write);
    copy(tma_a.with(*full, mask_a), from_a(_, _, _, *work.k_tile), to_a(_, _, _, write.index()));
    copy(tma_b.with(*full, mask_b), from_b(_, _, _, *work.k_tile), to_b(_, _, _, write.index()));
  }
}

/// partial += part PartA of A's stage times part PartB of B's (0 = high, 1 = low).
template <int PartA, int PartB, class TiledMma, class FragmentA, class FragmentB, class Partial>
CUTLASS_DEVICE void issue_product(TiledMma& tiled_mma, FragmentA const& frag_a,
                                  FragmentB const& frag_b, Partial& partial, int stage) {
  constexpr int kSteps = kSplitGroup / 8;  // wgmma k steps of 8 tf32 in one part
  using cute::_;
  CUTLASS_PRAGMA_UNROLL
  for (int step = 0; step < kSteps; ++step) {
    cute::gemm(tiled_mma, frag_a(_, _, PartA * kSteps + step, stage),
               frag_b(_, _, PartB * kSteps + step, stage), partial);
    tiled_mma.accumulate_ = cute::GMMA::ScaleOut::One;
  }
}

/// Issues the three products of a packed stage as one wgmma group, small terms first.
/// ScaleOut::Zero discards what `partial` held. Fragments are (MMA, rows, 4 k steps, stage).
template <class TiledMma, class FragmentA, class FragmentB, class Partial>
CUTLASS_DEVICE void issue_stage(FragmentA const& frag_a, FragmentB const& frag_b, Partial& partial,
                                int stage, cute::GMMA::ScaleOut first) {
  TiledMma tiled_mma;
  tiled_mma.accumulate_ = first;
  cute::warpgroup_fence_operand(partial);
  cute::warpgroup_arrive();
  issue_product<1, 0>(tiled_mma, frag_a, frag_b, partial, stage);
  issue_product<0, 1>(tiled_mma, frag_a, frag_b, partial, stage);
  issue_product<0, 0>(tiled_mma, frag_a, frag_b, partial, stage);
  cute::warpgroup_commit_batch();
}

/// One operand behind a tensor map: [rows, columns, batches].
template <class Stride>
constexpr auto operand_tensor(float const* data, int rows, int columns, int batches,
                              Stride stride) {
  return cute::make_tensor(data,
                           cute::make_layout(cute::make_shape(rows, columns, batches), stride));
}

/// TMA reads 16-byte units: the base and every stride but the unit one must be multiples of them.
template <class Stride>
bool tma_addressable(float const* data, Stride const& stride) {
  bool right = reinterpret_cast<uintptr_t>(data) % 16 == 0;
  cute::for_each(stride, [&](auto const& s) {
    if constexpr (!cute::is_static<cute::remove_cvref_t<decltype(s)>>::value) {
      right = right && s % 4 == 0;
    }
  });
  return right;
}

}  // namespace tessera::split_detail
