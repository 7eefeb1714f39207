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
#include "cutlass/gemm/collective/collective_mma_decl.hpp"
#include "cutlass/gemm/gemm.h"
#include "cutlass/pipeline/pipeline.hpp"
#include "tessera_cutlass/split_tf32_policy.h"
#include "tessera_cutlass/split_tf32_split_tile.h"
#include "tessera_cutlass/split_tf32_steps.h"

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

namespace cutlass::gemm::collective {

template <int Stages, class ClusterShape_, class KernelSchedule, int PromoteK, class TileShape_,
          class ElementA_, class StrideA_, class ElementB_, class StrideB_, class TiledMma_,
          class GmemTiledCopyA_, class SmemLayoutAtomA_, class SmemCopyAtomA_, class TransformA_,
          class GmemTiledCopyB_, class SmemLayoutAtomB_, class SmemCopyAtomB_, class TransformB_>
struct CollectiveMma<
    tessera::MainloopSm90TmaGmmaSplitTf32Inline<Stages, ClusterShape_, KernelSchedule, PromoteK>,
    TileShape_, ElementA_, StrideA_, ElementB_, StrideB_, TiledMma_, GmemTiledCopyA_,
    SmemLayoutAtomA_, SmemCopyAtomA_, TransformA_, GmemTiledCopyB_, SmemLayoutAtomB_,
    SmemCopyAtomB_, TransformB_> {
  // What GemmUniversal and its adapter read.
  using DispatchPolicy =
      tessera::MainloopSm90TmaGmmaSplitTf32Inline<Stages, ClusterShape_, KernelSchedule, PromoteK>;
  using TileShape = TileShape_;
  using ClusterShape = ClusterShape_;
  using ElementA = ElementA_;
  using StrideA = StrideA_;
  using ElementB = ElementB_;
  using StrideB = StrideB_;
  using TiledMma = TiledMma_;
  using ElementAccumulator = typename TiledMma::ValTypeC;
  using GmemTiledCopyA = GmemTiledCopyA_;
  using GmemTiledCopyB = GmemTiledCopyB_;
  using SmemLayoutAtomA = SmemLayoutAtomA_;
  using SmemLayoutAtomB = SmemLayoutAtomB_;
  using SmemCopyAtomA = SmemCopyAtomA_;
  using SmemCopyAtomB = SmemCopyAtomB_;
  using TransformA = TransformA_;
  using TransformB = TransformB_;
  using ArchTag = typename DispatchPolicy::ArchTag;
  using CtaShape_MNK = decltype(cute::shape_div(TileShape{}, ClusterShape{}));
  using MainloopPipeline = cutlass::PipelineTmaAsync<Stages>;
  using PipelineParams = typename MainloopPipeline::Params;
  using PipelineState = cutlass::PipelineState<Stages>;
  static constexpr int NumProducerThreadEvents = 1;

  static constexpr int kBlockM = cute::size<0>(TileShape{});
  static constexpr int kBlockN = cute::size<1>(TileShape{});
  static constexpr int kGroup = tessera::kSplitGroup;
  static constexpr int kWidth = tessera::kSplitGroupWidth;
  static constexpr int kPromoteTiles = PromoteK / kGroup;
  static constexpr int kThreads = cute::size(TiledMma{});
  // Stage i + 1 is split while wgmmas of i run; those of i - 1 may still run in the other
  // warpgroup.
  static constexpr int kBuffers = 3;
  static constexpr bool kRowsContiguousA = cutlass::gemm::detail::is_major<0, StrideA>();
  static constexpr bool kRowsContiguousB = cutlass::gemm::detail::is_major<0, StrideB>();

  static_assert(cute::size<2>(TileShape{}) == kGroup, "the K extent of the tile must be 16");
  static_assert(cute::is_same_v<ElementA, float> && cute::is_same_v<ElementB, float>,
                "operands are fp32");
  static_assert(cute::is_same_v<typename TiledMma::ValTypeA, tfloat32_t> &&
                    cute::is_same_v<typename TiledMma::ValTypeB, tfloat32_t> &&
                    cute::is_same_v<ElementAccumulator, float>,
                "the MMA must be tf32 x tf32 -> fp32");
  static_assert(kThreads == 2 * NumThreadsPerWarpGroup, "two warpgroups split for each other");
  static_assert(kBlockM * kBlockN / kThreads <= 96,
                "two accumulators of more than 96 registers each do not fit a thread");

  template <int Rows, bool RowsContiguous>
  using RawLayout = decltype(tessera::split_detail::raw_layout<RowsContiguous>(
      cute::Shape<cute::Int<Rows>, cute::Int<kGroup>, cute::Int<Stages>>{}));
  // One stage, for the TMA descriptor.
  template <int Rows, bool RowsContiguous>
  using RawTile = decltype(tessera::split_detail::raw_layout<RowsContiguous>(
      cute::Shape<cute::Int<Rows>, cute::Int<kGroup>>{}));
  using RawLayoutA = RawLayout<kBlockM, kRowsContiguousA>;
  using RawLayoutB = RawLayout<kBlockN, kRowsContiguousB>;
  using RawTileA = RawTile<kBlockM, kRowsContiguousA>;
  using RawTileB = RawTile<kBlockN, kRowsContiguousB>;
  using SmemLayoutA = decltype(cute::tile_to_shape(
      SmemLayoutAtomA{},
      cute::Shape<cute::Int<kBlockM>, cute::Int<kWidth>, cute::Int<kBuffers>>{}));
  using SmemLayoutB = decltype(cute::tile_to_shape(
      SmemLayoutAtomB{},
      cute::Shape<cute::Int<kBlockN>, cute::Int<kWidth>, cute::Int<kBuffers>>{}));

  struct SharedStorage {
    struct TensorStorage : cute::aligned_struct<1024, cute::_0> {
      cute::array_aligned<tfloat32_t, cute::cosize_v<SmemLayoutA>, 1024> a;
      cute::array_aligned<tfloat32_t, cute::cosize_v<SmemLayoutB>, 1024> b;
      cute::array_aligned<float, kBlockM * kGroup * Stages, 1024> raw_a;
      cute::array_aligned<float, kBlockN * kGroup * Stages, 1024> raw_b;
    } tensors;
    using PipelineStorage = typename MainloopPipeline::SharedStorage;
    PipelineStorage pipeline;
  };
  using TensorStorage = typename SharedStorage::TensorStorage;
  using PipelineStorage = typename SharedStorage::PipelineStorage;

  static constexpr uint32_t kStageBytes = (kBlockM + kBlockN) * kGroup * sizeof(float);

  /// Plain operands. A stride is (row, _1, batch) when K is contiguous, (_1, k, batch) when rows
  /// are; in elements.
  struct Arguments {
    float const* ptr_A = nullptr;
    StrideA dA{};
    float const* ptr_B = nullptr;
    StrideB dB{};
  };

  struct Params {
    using TmaA = decltype(cute::make_tma_copy_A_sm90(
        GmemTiledCopyA{}, tessera::split_detail::operand_tensor(nullptr, 0, 0, 0, StrideA{}),
        RawTileA{}, TileShape{}, ClusterShape{}));
    using TmaB = decltype(cute::make_tma_copy_B_sm90(
        GmemTiledCopyB{}, tessera::split_detail::operand_tensor(nullptr, 0, 0, 0, StrideB{}),
        RawTileB{}, TileShape{}, ClusterShape{}));
    TmaA tma_a;
    TmaB tma_b;
    uint32_t tma_transaction_bytes = kStageBytes;
  };

  template <class ProblemShape>
  static constexpr Params to_underlying_arguments(ProblemShape const& problem,
                                                  Arguments const& args, void* /*workspace*/) {
    using tessera::split_detail::operand_tensor;
    auto const [m, n, k, l] = cute::append<4>(problem, 1);
    return {
        cute::make_tma_copy_A_sm90(GmemTiledCopyA{}, operand_tensor(args.ptr_A, m, k, l, args.dA),
                                   RawTileA{}, TileShape{}, ClusterShape{}),
        cute::make_tma_copy_B_sm90(GmemTiledCopyB{}, operand_tensor(args.ptr_B, n, k, l, args.dB),
                                   RawTileB{}, TileShape{}, ClusterShape{})};
  }

  template <class ProblemShape>
  static bool can_implement(ProblemShape const& problem, Arguments const& args) {
    using tessera::split_detail::tma_addressable;
    auto const [m, n, k, l] = cute::append<4>(problem, 1);
    return m > 0 && n > 0 && k > 0 && l > 0 && tma_addressable(args.ptr_A, args.dA) &&
           tma_addressable(args.ptr_B, args.dB);
  }

  CUTLASS_DEVICE static void prefetch_tma_descriptors(Params const& params) {
    cute::prefetch_tma_descriptor(params.tma_a.get_tma_descriptor());
    cute::prefetch_tma_descriptor(params.tma_b.get_tma_descriptor());
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
    tessera::split_detail::fill_stages<ClusterShape>(
        params.tma_a, params.tma_b, inputs,
        make_tensor(make_smem_ptr(storage.raw_a.data()), RawLayoutA{}),
        make_tensor(make_smem_ptr(storage.raw_b.data()), RawLayoutB{}), pipeline, write,
        tessera::split_detail::ProducerWork<BlockCoord, KTileIterator>{block, k_tile, k_tile_count,
                                                                       rank_in_cluster});
  }

  /// Producer, after its last tile: a block must not exit while a peer of its cluster may still
  /// signal it.
  CUTLASS_DEVICE void load_tail(MainloopPipeline pipeline, PipelineState write) {
    if (cute::elect_one_sync()) pipeline.producer_tail(write);
  }

  /// Consumers: accum = A * B over k_tile_count stages. All wgmmas are complete and all stages
  /// released on return.
  template <class FrgTensorC>
  CUTLASS_DEVICE void mma(MainloopPipeline pipeline, PipelineState read, FrgTensorC& accum,
                          int k_tile_count, int thread_idx, TensorStorage& storage,
                          Params const& /*params*/) {
    using namespace cute;
    using tessera::split_detail::issue_stage;
    static_assert(is_rmem<FrgTensorC>::value, "the accumulator lives in registers");
    int const warp_group = __shfl_sync(0xffffffff, thread_idx / NumThreadsPerWarpGroup, 0);
    auto const thread_mma = TiledMma{}.get_slice(warp_group * NumThreadsPerWarpGroup);
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

  /// mma() leaves nothing in flight.
  CUTLASS_DEVICE void mma_tail(MainloopPipeline, PipelineState, int) {}

 private:
  /// Waits for a raw stage and writes this thread's share of the packed buffer.
  CUTLASS_DEVICE static void split_stage(MainloopPipeline& pipeline, PipelineState const& read,
                                         int buffer, int thread, TensorStorage& storage) {
    using tessera::split_detail::split_tile;
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

}  // namespace cutlass::gemm::collective
