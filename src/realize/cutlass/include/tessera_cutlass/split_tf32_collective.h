/* The split-tf32 mainloop: cutlass::gemm::collective::CollectiveMma for
 * tessera::MainloopSm90TmaGmmaSplitTf32.
 *
 * Both operands are packed (split_tf32_layout.h): one TMA box of 32 columns carries 16 k, its high
 * parts in columns 0-15 and its low parts in 16-31, in one 128-byte-swizzled line per row. Towards
 * the kernel the K extent of the tile is 16; towards TMA and the shared-memory layouts it is 32. A
 * consumer issues, per stage,
 *
 *   A.lo * B.hi,  A.hi * B.lo,  A.hi * B.hi        (two wgmma k8 steps each; small terms first)
 *
 * into a partial accumulator and adds that to the kernel's fp32 accumulator every PromoteK of k:
 * the tensor core keeps fewer low bits than fp32 while it accumulates, so a long chain in it would
 * cost the accuracy that the split buys. Two accumulators of BM * BN / 256 registers each limit a
 * cooperative tile to 128 x 192.
 */
#pragma once
#include "cute/algorithm/functional.hpp"
#include "cute/algorithm/gemm.hpp"
#include "cute/arch/cluster_sm90.hpp"
#include "cute/arch/copy_sm90.hpp"
#include "cute/tensor.hpp"
#include "cutlass/cutlass.h"
#include "cutlass/gemm/collective/collective_mma_decl.hpp"
#include "cutlass/pipeline/pipeline.hpp"
#include "tessera_cutlass/split_tf32_policy.h"
#include "tessera_cutlass/split_tf32_steps.h"

namespace cutlass::gemm::collective {

template <int Stages, class ClusterShape_, class KernelSchedule, int PromoteK, class TileShape_,
          class ElementA_, class StrideA_, class ElementB_, class StrideB_, class TiledMma_,
          class GmemTiledCopyA_, class SmemLayoutAtomA_, class SmemCopyAtomA_, class TransformA_,
          class GmemTiledCopyB_, class SmemLayoutAtomB_, class SmemCopyAtomB_, class TransformB_>
struct CollectiveMma<
    tessera::MainloopSm90TmaGmmaSplitTf32<Stages, ClusterShape_, KernelSchedule, PromoteK>,
    TileShape_, ElementA_, StrideA_, ElementB_, StrideB_, TiledMma_, GmemTiledCopyA_,
    SmemLayoutAtomA_, SmemCopyAtomA_, TransformA_, GmemTiledCopyB_, SmemLayoutAtomB_,
    SmemCopyAtomB_, TransformB_> {
  // What GemmUniversal and its adapter read.
  using DispatchPolicy =
      tessera::MainloopSm90TmaGmmaSplitTf32<Stages, ClusterShape_, KernelSchedule, PromoteK>;
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

  static_assert(cute::size<2>(TileShape{}) == kGroup, "the K extent of the tile must be 16");
  static_assert(cute::is_same_v<ElementA, float> && cute::is_same_v<ElementB, float>,
                "packed operands are fp32 arrays");
  static_assert(cute::is_same_v<typename TiledMma::ValTypeA, tfloat32_t> &&
                    cute::is_same_v<typename TiledMma::ValTypeB, tfloat32_t> &&
                    cute::is_same_v<ElementAccumulator, float>,
                "the MMA must be tf32 x tf32 -> fp32");
  static_assert(cute::is_base_of_v<cute::GMMA::DescriptorIterator, typename TiledMma::FrgTypeA> &&
                    cute::is_base_of_v<cute::GMMA::DescriptorIterator, typename TiledMma::FrgTypeB>,
                "the MMA must read both operands from shared memory");
  static_assert(cute::is_void_v<SmemCopyAtomA> && cute::is_void_v<SmemCopyAtomB>,
                "operands go from shared memory straight into the tensor core");
  static_assert(kBlockM * kBlockN / cute::size(TiledMma{}) <= 96,
                "two accumulators of more than 96 registers each do not fit a thread");

  // Tile extents as TMA and shared memory see them.
  using PackedTile = cute::Shape<cute::Int<kBlockM>, cute::Int<kBlockN>, cute::Int<kWidth>>;
  using SmemLayoutA = decltype(cute::tile_to_shape(
      SmemLayoutAtomA{}, cute::Shape<cute::Int<kBlockM>, cute::Int<kWidth>, cute::Int<Stages>>{}));
  using SmemLayoutB = decltype(cute::tile_to_shape(
      SmemLayoutAtomB{}, cute::Shape<cute::Int<kBlockN>, cute::Int<kWidth>, cute::Int<Stages>>{}));

  // One stage, for the TMA descriptor. (Slicing the layout above fails to compile for some BlockN.)
  using StageLayoutA = decltype(cute::tile_to_shape(
      SmemLayoutAtomA{}, cute::Shape<cute::Int<kBlockM>, cute::Int<kWidth>>{}));
  using StageLayoutB = decltype(cute::tile_to_shape(
      SmemLayoutAtomB{}, cute::Shape<cute::Int<kBlockN>, cute::Int<kWidth>>{}));

  struct SharedStorage {
    struct TensorStorage : cute::aligned_struct<1024, cute::_0> {
      cute::array_aligned<tfloat32_t, cute::cosize_v<SmemLayoutA>, 1024> a;
      cute::array_aligned<tfloat32_t, cute::cosize_v<SmemLayoutB>, 1024> b;
    } tensors;
    using PipelineStorage = typename MainloopPipeline::SharedStorage;
    PipelineStorage pipeline;
  };
  using TensorStorage = typename SharedStorage::TensorStorage;
  using PipelineStorage = typename SharedStorage::PipelineStorage;

  static constexpr uint32_t kStageBytes = (kBlockM + kBlockN) * kWidth * sizeof(float);

  /// Packed operands; strides are (row, _1, batch) in packed fp32 elements, multiples of 4. The
  /// problem's K is the unpacked one.
  struct Arguments {
    float const* ptr_A = nullptr;
    StrideA dA{};
    float const* ptr_B = nullptr;
    StrideB dB{};
  };

  struct Params {
    using TmaA = decltype(cute::make_tma_copy_A_sm90(
        GmemTiledCopyA{}, tessera::split_detail::operand_tensor(nullptr, 0, 0, 0, StrideA{}),
        StageLayoutA{}, PackedTile{}, ClusterShape{}));
    using TmaB = decltype(cute::make_tma_copy_B_sm90(
        GmemTiledCopyB{}, tessera::split_detail::operand_tensor(nullptr, 0, 0, 0, StrideB{}),
        StageLayoutB{}, PackedTile{}, ClusterShape{}));
    TmaA tma_a;
    TmaB tma_b;
    uint32_t tma_transaction_bytes = kStageBytes;
  };

  template <class ProblemShape>
  static constexpr Params to_underlying_arguments(ProblemShape const& problem,
                                                  Arguments const& args, void* /*workspace*/) {
    using tessera::split_detail::operand_tensor;
    auto const [m, n, k, l] = cute::append<4>(problem, 1);
    auto const width = static_cast<int>(tessera::split_row_elements(k));
    return {cute::make_tma_copy_A_sm90(GmemTiledCopyA{},
                                       operand_tensor(args.ptr_A, m, width, l, args.dA),
                                       StageLayoutA{}, PackedTile{}, ClusterShape{}),
            cute::make_tma_copy_B_sm90(GmemTiledCopyB{},
                                       operand_tensor(args.ptr_B, n, width, l, args.dB),
                                       StageLayoutB{}, PackedTile{}, ClusterShape{})};
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

  /// The packed operands as TMA coordinates, tiled: (BM, 32, m, k, l) and (BN, 32, n, k, l).
  template <class ProblemShape>
  CUTLASS_DEVICE auto load_init(ProblemShape const& problem, Params const& params) const {
    using namespace cute;
    auto [m, n, k, l] = problem;
    auto const width = static_cast<int>(tessera::split_row_elements(k));
    auto const tile = make_coord(_, _, _);
    Tensor a = params.tma_a.get_tma_tensor(make_shape(m, width, l));
    Tensor b = params.tma_b.get_tma_tensor(make_shape(n, width, l));
    return make_tuple(local_tile(a, PackedTile{}, tile, Step<_1, Underscore, _1>{}),
                      local_tile(b, PackedTile{}, tile, Step<Underscore, _1, _1>{}));
  }

  /// Producer: one elected thread fills stages, two TMA boxes each.
  template <class TensorA, class TensorB, class KTileIterator, class BlockCoord>
  CUTLASS_DEVICE void load(Params const& params, MainloopPipeline pipeline, PipelineState write,
                           cute::tuple<TensorA, TensorB> const& inputs, BlockCoord const& block,
                           KTileIterator k_tile, int k_tile_count, int /*thread_idx*/,
                           uint32_t rank_in_cluster, TensorStorage& storage) {
    using namespace cute;
    if (!elect_one_sync()) return;
    tessera::split_detail::fill_stages<ClusterShape>(
        params.tma_a, params.tma_b, inputs,
        make_tensor(make_smem_ptr(storage.a.data()), SmemLayoutA{}),
        make_tensor(make_smem_ptr(storage.b.data()), SmemLayoutB{}), pipeline, write,
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
    Tensor frag_a =
        thread_mma.make_fragment_A(thread_mma.partition_A(smem_a));  // (MMA, m, 4, stage)
    Tensor frag_b =
        thread_mma.make_fragment_B(thread_mma.partition_B(smem_b));  // (MMA, n, 4, stage)
    CUTE_STATIC_ASSERT_V(size<2>(frag_a) == Int<kWidth / 8>{});
    CUTE_STATIC_ASSERT_V(size<1>(frag_a) == size<1>(accum));
    CUTE_STATIC_ASSERT_V(size<1>(frag_b) == size<2>(accum));

    Tensor partial = make_fragment_like(accum);
    clear(accum);

    PipelineState release = read;
    // The second warpgroup promotes half an interval after the first: one's additions run under the
    // other's wgmmas.
    int chunk = warp_group % 2 == 0 ? kPromoteTiles : (kPromoteTiles + 1) / 2;
    CUTLASS_PRAGMA_NO_UNROLL
    while (k_tile_count > 0) {
      int const tiles = chunk < k_tile_count ? chunk : k_tile_count;
      pipeline.consumer_wait(read, pipeline.consumer_try_wait(read));
      issue_stage<TiledMma>(frag_a, frag_b, partial, read.index(), GMMA::ScaleOut::Zero);
      ++read;
      CUTLASS_PRAGMA_NO_UNROLL
      for (int i = 1; i < tiles; ++i) {
        pipeline.consumer_wait(read, pipeline.consumer_try_wait(read));
        issue_stage<TiledMma>(frag_a, frag_b, partial, read.index(), GMMA::ScaleOut::One);
        ++read;
        warpgroup_wait<1>();
        warpgroup_fence_operand(partial);
        pipeline.consumer_release(release);
        ++release;
      }
      warpgroup_wait<0>();
      warpgroup_fence_operand(partial);
      pipeline.consumer_release(release);
      ++release;
      CUTLASS_PRAGMA_UNROLL
      for (int i = 0; i < size(accum); ++i) accum(i) += partial(i);
      k_tile_count -= tiles;
      chunk = kPromoteTiles;
    }
  }

  /// mma() leaves nothing in flight.
  CUTLASS_DEVICE void mma_tail(MainloopPipeline, PipelineState, int) {}
};

}  // namespace cutlass::gemm::collective
