/* The split-tf32 mainloop without a pre-pass: CollectiveMma for
 * tessera::MainloopSm90TmaGmmaSplitTf32Inline.
 *
 * TMA brings plain fp32 tiles (K- or MN-major); the two consumer warpgroups split them into packed
 * buffers (split_tf32_split_tile.h) and then multiply as split_tf32_collective.h does. While the
 * tensor core works on stage i, the same warps split stage i + 1. It moves a third of the bytes of
 * pre-pass plus GEMM, and more through shared memory: for long K, few rows or no workspace. Operand
 * strides must be multiples of 4 elements (TMA).
 */
#pragma once
#include "cute/algorithm/functional.hpp"
#include "cute/tensor.hpp"
#include "cutlass/arch/barrier.h"
#include "cutlass/cutlass.h"
#include "cutlass/gemm/gemm.h"
#include "cutlass/pipeline/pipeline.hpp"
#include "tessera_cutlass/split_tf32_split_tile.h"
#include "tessera_cutlass/split_tf32_types.h"

namespace tessera::split_detail {

/// Shared-memory layout of raw tiles, Shape (rows, 16) or (rows, 16, stages).
template <bool RowsContiguous, class Shape>
constexpr auto raw_layout(Shape const& shape) {
  if constexpr (RowsContiguous) {
    return cute::make_layout(shape);
  } else {
    return cute::tile_to_shape(cute::GMMA::Layout_K_SW64_Atom<float>{}, shape);
  }
}

}  // namespace tessera::split_detail

namespace tessera {

/// Plain operands. A stride is (row, _1, batch) when K is contiguous, (_1, k, batch) when rows
/// are; in elements. `Types` is SplitTf32Types.
template <class Types>
struct SplitTf32Inline : Types {
  using typename Types::Arguments;
  using typename Types::ClusterShape;
  using typename Types::GmemTiledCopyA;
  using typename Types::GmemTiledCopyB;
  using typename Types::MainloopPipeline;
  using typename Types::PipelineState;
  using typename Types::StrideA;
  using typename Types::StrideB;
  using typename Types::TiledMma;
  using typename Types::TileShape;
  using Types::kBlockM;
  using Types::kBlockN;
  using Types::kGroup;
  using Types::kPromoteTiles;
  using Types::kThreads;
  using Types::kWidth;

  // Stage i + 1 is split while wgmmas of i run; those of i - 1 may still run in the other
  // warpgroup.
  static constexpr int kBuffers = 3;
  static constexpr bool kRowsContiguousA = cutlass::gemm::detail::is_major<0, StrideA>();
  static constexpr bool kRowsContiguousB = cutlass::gemm::detail::is_major<0, StrideB>();

  static_assert(kThreads == 2 * cutlass::NumThreadsPerWarpGroup,
                "two warpgroups split for each other");

  template <int Rows, bool RowsContiguous>
  using RawLayout = decltype(split_detail::raw_layout<RowsContiguous>(
      cute::Shape<cute::Int<Rows>, cute::Int<kGroup>, cute::Int<Types::kStages>>{}));
  // One stage, for the TMA descriptor.
  template <int Rows, bool RowsContiguous>
  using RawTile = decltype(split_detail::raw_layout<RowsContiguous>(
      cute::Shape<cute::Int<Rows>, cute::Int<kGroup>>{}));
  using RawLayoutA = RawLayout<kBlockM, kRowsContiguousA>;
  using RawLayoutB = RawLayout<kBlockN, kRowsContiguousB>;
  using RawTileA = RawTile<kBlockM, kRowsContiguousA>;
  using RawTileB = RawTile<kBlockN, kRowsContiguousB>;
  using SmemLayoutA = typename Types::template PackedA<kBuffers>;
  using SmemLayoutB = typename Types::template PackedB<kBuffers>;

  struct SharedStorage {
    struct TensorStorage : cute::aligned_struct<1024, cute::_0> {
      cute::array_aligned<cutlass::tfloat32_t, cute::cosize_v<SmemLayoutA>, 1024> a;
      cute::array_aligned<cutlass::tfloat32_t, cute::cosize_v<SmemLayoutB>, 1024> b;
      cute::array_aligned<float, kBlockM * kGroup * Types::kStages, 1024> raw_a;
      cute::array_aligned<float, kBlockN * kGroup * Types::kStages, 1024> raw_b;
    } tensors;
    using PipelineStorage = typename MainloopPipeline::SharedStorage;
    PipelineStorage pipeline;
  };
  using TensorStorage = typename SharedStorage::TensorStorage;
  using PipelineStorage = typename SharedStorage::PipelineStorage;

  static constexpr uint32_t kStageBytes = (kBlockM + kBlockN) * kGroup * sizeof(float);

  struct Params {
    using TmaA = decltype(cute::make_tma_copy_A_sm90(
        GmemTiledCopyA{}, split_detail::operand_tensor(nullptr, 0, 0, 0, StrideA{}), RawTileA{},
        TileShape{}, ClusterShape{}));
    using TmaB = decltype(cute::make_tma_copy_B_sm90(
        GmemTiledCopyB{}, split_detail::operand_tensor(nullptr, 0, 0, 0, StrideB{}), RawTileB{},
        TileShape{}, ClusterShape{}));
    TmaA tma_a;
    TmaB tma_b;
    uint32_t tma_transaction_bytes = kStageBytes;
  };

  template <class ProblemShape>
  static constexpr Params to_underlying_arguments(ProblemShape const& problem,
                                                  Arguments const& args, void* /*workspace*/) {
    using split_detail::operand_tensor;
    auto const [m, n, k, l] = cute::append<4>(problem, 1);
    return {
        cute::make_tma_copy_A_sm90(GmemTiledCopyA{}, operand_tensor(args.ptr_A, m, k, l, args.dA),
                                   RawTileA{}, TileShape{}, ClusterShape{}),
        cute::make_tma_copy_B_sm90(GmemTiledCopyB{}, operand_tensor(args.ptr_B, n, k, l, args.dB),
                                   RawTileB{}, TileShape{}, ClusterShape{})};
  }

  /// The operands as TMA coordinates, tiled: (BM, 16, m, k, l) and (BN, 16, n, k, l).
  template <class ProblemShape>
  CUTLASS_DEVICE auto load_init(ProblemShape const& problem, Params const& params) const {
    using namespace cute;
    auto [m, n, k, l] = problem;
    auto const tile = make_coord(_, _, _);
    Tensor a = params.tma_a.get_tma_tensor(make_shape(m, k, l));
    Tensor b = params.tma_b.get_tma_tensor(make_shape(n, k, l));
    return make_tuple(local_tile(a, TileShape{}, tile, Step<_1, Underscore, _1>{}),
                      local_tile(b, TileShape{}, tile, Step<Underscore, _1, _1>{}));
  }

  /// Producer: one elected thread fills stages.
  template <class TensorA, class TensorB, class KTileIterator, class BlockCoord>
  CUTLASS_DEVICE void load(Params const& params, MainloopPipeline pipeline, PipelineState write,
                           cute::tuple<TensorA, TensorB> const& inputs, BlockCoord const& block,
                           KTileIterator k_tile, int k_tile_count, int /*thread_idx*/,
                           uint32_t rank_in_cluster, TensorStorage& storage) {
    using namespace cute;
    if (!elect_one_sync()) return;
    split_detail::fill_stages<ClusterShape>(
        params.tma_a, params.tma_b, inputs,
        make_tensor(make_smem_ptr(storage.raw_a.data()), RawLayoutA{}),
        make_tensor(make_smem_ptr(storage.raw_b.data()), RawLayoutB{}), pipeline, write,
        split_detail::ProducerWork<BlockCoord, KTileIterator>{block, k_tile, k_tile_count,
                                                              rank_in_cluster});
  }

  /// Consumers: accum = A * B over k_tile_count stages. All wgmmas are complete and all stages
  /// released on return.
  template <class FrgTensorC>
  CUTLASS_DEVICE void mma(MainloopPipeline pipeline, PipelineState read, FrgTensorC& accum,
                          int k_tile_count, int thread_idx, TensorStorage& storage,
                          Params const& /*params*/) {
    using namespace cute;
    using split_detail::issue_stage;
    static_assert(is_rmem<FrgTensorC>::value, "the accumulator lives in registers");
    int const warp_group = __shfl_sync(0xffffffff, thread_idx / cutlass::NumThreadsPerWarpGroup, 0);
    auto const thread_mma = TiledMma{}.get_slice(warp_group * cutlass::NumThreadsPerWarpGroup);
    Tensor smem_a = make_tensor(make_smem_ptr(storage.a.data()), SmemLayoutA{});
    Tensor smem_b = make_tensor(make_smem_ptr(storage.b.data()), SmemLayoutB{});
    Tensor frag_a = thread_mma.make_fragment_A(thread_mma.partition_A(smem_a));
    Tensor frag_b = thread_mma.make_fragment_B(thread_mma.partition_B(smem_b));
    CUTE_STATIC_ASSERT_V(size<2>(frag_a) == Int<kWidth / 8>{});
    Tensor partial = make_fragment_like(accum);
    clear(accum);

    int buffer = 0;
    split_stage(pipeline, read, buffer, thread_idx, storage);
    CUTLASS_PRAGMA_NO_UNROLL
    while (k_tile_count > 0) {
      int const last = k_tile_count > kPromoteTiles ? k_tile_count - kPromoteTiles : 0;
      meet(pipeline, read);
      issue_stage<TiledMma>(frag_a, frag_b, partial, buffer, GMMA::ScaleOut::Zero);
      buffer = buffer == kBuffers - 1 ? 0 : buffer + 1;
      if (--k_tile_count > 0) split_stage(pipeline, read, buffer, thread_idx, storage);
      CUTLASS_PRAGMA_NO_UNROLL
      while (k_tile_count > last) {
        meet(pipeline, read);
        issue_stage<TiledMma>(frag_a, frag_b, partial, buffer, GMMA::ScaleOut::One);
        buffer = buffer == kBuffers - 1 ? 0 : buffer + 1;
        if (--k_tile_count > 0) split_stage(pipeline, read, buffer, thread_idx, storage);
        warpgroup_wait<1>();
        warpgroup_fence_operand(partial);
      }
      warpgroup_wait<0>();
      warpgroup_fence_operand(partial);
      CUTLASS_PRAGMA_UNROLL
      for (int i = 0; i < size(accum); ++i) accum(i) += partial(i);
    }
    // The next tile of this block starts to split into buffer 0: the other warpgroup must be done
    // with it.
    publish();
  }

 private:
  /// Waits for a raw stage and writes this thread's share of the packed buffer.
  CUTLASS_DEVICE static void split_stage(MainloopPipeline& pipeline, PipelineState const& read,
                                         int buffer, int thread, TensorStorage& storage) {
    using split_detail::split_tile;
    pipeline.consumer_wait(read, pipeline.consumer_try_wait(read));
    asm volatile("" ::: "memory");
    int const stage = read.index();
    split_tile<kBlockM, kRowsContiguousA, kThreads>(
        storage.raw_a.data() + stage * kBlockM * kGroup,
        reinterpret_cast<float*>(storage.a.data()) + buffer * kBlockM * kWidth, thread);
    split_tile<kBlockN, kRowsContiguousB, kThreads>(
        storage.raw_b.data() + stage * kBlockN * kGroup,
        reinterpret_cast<float*>(storage.b.data()) + buffer * kBlockN * kWidth, thread);
  }

  /// All have split the stage: it is released, and its packed buffer may be multiplied.
  CUTLASS_DEVICE static void meet(MainloopPipeline& pipeline, PipelineState& read) {
    publish();
    pipeline.consumer_release(read);
    ++read;
  }

  /// Makes what this thread wrote to shared memory visible to wgmma, and meets both warpgroups.
  CUTLASS_DEVICE static void publish() {
    asm volatile("fence.proxy.async.shared::cta;\n\tbar.sync %0, %1;" ::"n"(
                     static_cast<int>(cutlass::arch::ReservedNamedBarriers::TransformBarrier)),
                 "n"(kThreads)
                 : "memory");
  }
};

}  // namespace tessera

namespace cutlass::gemm::collective {
// All parameters by name: a pack would be refused, CollectiveMma has none.
template <int Stages, class Cluster, class Schedule, int PromoteK, class Tile, class EA, class SA,
          class EB, class SB, class Mma, class CopyA, class LayoutA, class AtomA, class TransformA,
          class CopyB, class LayoutB, class AtomB, class TransformB>
struct CollectiveMma<
    tessera::MainloopSm90TmaGmmaSplitTf32Inline<Stages, Cluster, Schedule, PromoteK>, Tile, EA, SA,
    EB, SB, Mma, CopyA, LayoutA, AtomA, TransformA, CopyB, LayoutB, AtomB, TransformB>
    : tessera::SplitTf32Inline<tessera::SplitTf32Types<
          tessera::MainloopSm90TmaGmmaSplitTf32Inline<Stages, Cluster, Schedule, PromoteK>, Tile,
          EA, SA, EB, SB, Mma, CopyA, LayoutA, AtomA, TransformA, CopyB, LayoutB, AtomB,
          TransformB>> {};
}  // namespace cutlass::gemm::collective
