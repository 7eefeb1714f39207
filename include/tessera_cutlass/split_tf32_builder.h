/* Assembles the split-tf32 CollectiveMma from a tile, a cluster and a stage count. split_tf32.h
 * shows the use. */
#pragma once
#include "cute/arch/mma_sm90.hpp"
#include "cute/atom/mma_traits_sm90_gmma.hpp"
#include "cutlass/gemm/collective/collective_mma_decl.hpp"
#include "tessera_cutlass/split_tf32_collective.h"
#include "tessera_cutlass/split_tf32_inline_collective.h"

namespace tessera {

/// Shared memory that a block may use on sm_90, bytes, and what the kernel's barriers and alignment
/// take of it.
inline constexpr int kSplitSharedBytes = 232448;
inline constexpr int kSplitSharedOverhead = 1024;

/// The most stages that fit beside an epilogue of `epilogue_bytes`
/// (sizeof(CollectiveEpilogue::SharedStorage)).
constexpr int split_tf32_stages(int block_m, int block_n, int epilogue_bytes) {
  int const epilogue = (epilogue_bytes + 1023) / 1024 * 1024;
  return (kSplitSharedBytes - kSplitSharedOverhead - epilogue) / ((block_m + block_n) * 128);
}

/// Type of dA and dB: (row stride, _1, batch stride) in packed fp32 elements.
using SplitStride = cute::Stride<int64_t, cute::_1, int64_t>;

/// Strides of an operand packed by split_tf32_pack.
inline SplitStride split_stride(int64_t rows, int64_t k) {
  return {split_row_elements(k), cute::_1{}, rows * split_row_elements(k)};
}

/// BlockM: cooperative 128 or 256, ping-pong 64. BlockM * BlockN <= 128 * 192 cooperative, 64 * 192
/// ping-pong; BlockN a multiple of 8 (of the epilogue tile's N).
template <int BlockM, int BlockN, class ClusterShape_, int Stages,
          class KernelSchedule = cutlass::gemm::KernelTmaWarpSpecializedCooperative,
          int PromoteK = 128>
struct SplitTf32Builder {
  static constexpr bool kCooperative =
      cute::is_base_of_v<cutlass::gemm::KernelTmaWarpSpecializedCooperative, KernelSchedule>;
  /// What the epilogue builder, too, must be given.
  using TileShape = cute::Shape<cute::Int<BlockM>, cute::Int<BlockN>, cute::Int<kSplitGroup>>;
  using ClusterShape = ClusterShape_;
  using AtomLayout = cute::Layout<cute::Shape<cute::Int<kCooperative ? 2 : 1>, cute::_1, cute::_1>>;
  using TiledMma = decltype(cute::make_tiled_mma(
      cute::GMMA::ss_op_selector<cutlass::tfloat32_t, cutlass::tfloat32_t, float, TileShape,
                                 cute::GMMA::Major::K, cute::GMMA::Major::K>(),
      AtomLayout{}));
  using SmemAtom = cute::GMMA::Layout_K_SW128_Atom<cutlass::tfloat32_t>;
  template <bool Multicast>
  using Load = cute::conditional_t<Multicast, cute::SM90_TMA_LOAD_MULTICAST, cute::SM90_TMA_LOAD>;

  using CollectiveOp = cutlass::gemm::collective::CollectiveMma<
      MainloopSm90TmaGmmaSplitTf32<Stages, ClusterShape, KernelSchedule, PromoteK>, TileShape,
      float, SplitStride, float, SplitStride, TiledMma, Load<(cute::size<1>(ClusterShape{}) > 1)>,
      SmemAtom, void, cute::identity, Load<(cute::size<0>(ClusterShape{}) > 1)>, SmemAtom, void,
      cute::identity>;
};

/// The same for the inline mainloop: three packed buffers, and stages of raw tiles.
constexpr int split_tf32_inline_stages(int block_m, int block_n, int epilogue_bytes) {
  int const epilogue = (epilogue_bytes + 1023) / 1024 * 1024;
  int const buffers = 3 * (block_m + block_n) * 128;
  return (kSplitSharedBytes - kSplitSharedOverhead - epilogue - buffers) /
         ((block_m + block_n) * 64);
}

/// Strides of a plain fp32 operand of the inline mainloop: (row, k, batch), in elements.
using KMajorStride = cute::Stride<int64_t, cute::_1, int64_t>;
using RowMajorStride = cute::Stride<cute::_1, int64_t, int64_t>;  // rows (M or N) are contiguous

/// Cooperative only; tiles as above. StrideA and StrideB: KMajorStride or RowMajorStride.
template <int BlockM, int BlockN, class ClusterShape_, int Stages, class StrideA, class StrideB,
          int PromoteK = 128>
struct SplitTf32InlineBuilder {
  using KernelSchedule = cutlass::gemm::KernelTmaWarpSpecializedCooperative;
  using Packed = SplitTf32Builder<BlockM, BlockN, ClusterShape_, 2, KernelSchedule, PromoteK>;
  using TileShape = typename Packed::TileShape;
  using ClusterShape = ClusterShape_;
  using CollectiveOp = cutlass::gemm::collective::CollectiveMma<
      MainloopSm90TmaGmmaSplitTf32Inline<Stages, ClusterShape, KernelSchedule, PromoteK>, TileShape,
      float, StrideA, float, StrideB, typename Packed::TiledMma,
      typename Packed::template Load<(cute::size<1>(ClusterShape{}) > 1)>,
      typename Packed::SmemAtom, void, cute::identity,
      typename Packed::template Load<(cute::size<0>(ClusterShape{}) > 1)>,
      typename Packed::SmemAtom, void, cute::identity>;
};

}  // namespace tessera
