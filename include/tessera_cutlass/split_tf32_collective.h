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
#include "cutlass/pipeline/pipeline.hpp"
#include "tessera_cutlass/split_tf32_types.h"

namespace tessera {

/// Packed operands; strides are (row, _1, batch) in packed fp32 elements, multiples of 4. The
/// problem's K is the unpacked one. `Types` is SplitTf32Types.
template <class Types>
struct SplitTf32Packed : Types {
  using typename Types::Arguments;
  using typename Types::ClusterShape;
  using typename Types::GmemTiledCopyA;
  using typename Types::GmemTiledCopyB;
  using typename Types::MainloopPipeline;
  using typename Types::PipelineState;
  using typename Types::SmemLayoutAtomA;
  using typename Types::SmemLayoutAtomB;
  using typename Types::StrideA;
  using typename Types::StrideB;
  using typename Types::TiledMma;
  using Types::kBlockM;
  using Types::kBlockN;
  using Types::kPromoteTiles;
  using Types::kWidth;

  // Tile extents as TMA and shared memory see them.
  using PackedTile = cute::Shape<cute::Int<kBlockM>, cute::Int<kBlockN>, cute::Int<kWidth>>;
  using SmemLayoutA = typename Types::template PackedA<Types::kStages>;
  using SmemLayoutB = typename Types::template PackedB<Types::kStages>;

  // One stage, for the TMA descriptor. (Slicing the layout above fails to compile for some BlockN.)
  using StageLayoutA = decltype(cute::tile_to_shape(
      SmemLayoutAtomA{}, cute::Shape<cute::Int<kBlockM>, cute::Int<kWidth>>{}));
  using StageLayoutB = decltype(cute::tile_to_shape(
      SmemLayoutAtomB{}, cute::Shape<cute::Int<kBlockN>, cute::Int<kWidth>>{}));

  struct SharedStorage {
    struct TensorStorage : cute::aligned_struct<1024, cute::_0> {
      cute::array_aligned<cutlass::tfloat32_t, cute::cosize_v<SmemLayoutA>, 1024> a;
      cute::array_aligned<cutlass::tfloat32_t, cute::cosize_v<SmemLayoutB>, 1024> b;
    } tensors;
    using PipelineStorage = typename MainloopPipeline::SharedStorage;
    PipelineStorage pipeline;
  };
  using TensorStorage = typename SharedStorage::TensorStorage;
  using PipelineStorage = typename SharedStorage::PipelineStorage;

  static constexpr uint32_t kStageBytes = (kBlockM + kBlockN) * kWidth * sizeof(float);

  struct Params {
    using TmaA = decltype(cute::make_tma_copy_A_sm90(
        GmemTiledCopyA{}, split_detail::operand_tensor(nullptr, 0, 0, 0, StrideA{}), StageLayoutA{},
        PackedTile{}, ClusterShape{}));
    using TmaB = decltype(cute::make_tma_copy_B_sm90(
        GmemTiledCopyB{}, split_detail::operand_tensor(nullptr, 0, 0, 0, StrideB{}), StageLayoutB{},
        PackedTile{}, ClusterShape{}));
    TmaA tma_a;
    TmaB tma_b;
    uint32_t tma_transaction_bytes = kStageBytes;
  };

  template <class ProblemShape>
  static constexpr Params to_underlying_arguments(ProblemShape const& problem,
                                                  Arguments const& args, void* /*workspace*/) {
    using split_detail::operand_tensor;
    auto const [m, n, k, l] = cute::append<4>(problem, 1);
    auto const width = static_cast<int>(split_row_elements(k));
    return {cute::make_tma_copy_A_sm90(GmemTiledCopyA{},
                                       operand_tensor(args.ptr_A, m, width, l, args.dA),
                                       StageLayoutA{}, PackedTile{}, ClusterShape{}),
            cute::make_tma_copy_B_sm90(GmemTiledCopyB{},
                                       operand_tensor(args.ptr_B, n, width, l, args.dB),
                                       StageLayoutB{}, PackedTile{}, ClusterShape{})};
  }

  /// The packed operands as TMA coordinates, tiled: (BM, 32, m, k, l) and (BN, 32, n, k, l).
  template <class ProblemShape>
  CUTLASS_DEVICE auto load_init(ProblemShape const& problem, Params const& params) const {
    using namespace cute;
    auto [m, n, k, l] = problem;
    auto const width = static_cast<int>(split_row_elements(k));
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
    split_detail::fill_stages<ClusterShape>(
        params.tma_a, params.tma_b, inputs,
        make_tensor(make_smem_ptr(storage.a.data()), SmemLayoutA{}),
        make_tensor(make_smem_ptr(storage.b.data()), SmemLayoutB{}), pipeline, write,
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
};

}  // namespace tessera

namespace cutlass::gemm::collective {
// All parameters by name: a pack would be refused, CollectiveMma has none.
template <int Stages, class Cluster, class Schedule, int PromoteK, class Tile, class EA, class SA,
          class EB, class SB, class Mma, class CopyA, class LayoutA, class AtomA, class TransformA,
          class CopyB, class LayoutB, class AtomB, class TransformB>
struct CollectiveMma<tessera::MainloopSm90TmaGmmaSplitTf32<Stages, Cluster, Schedule, PromoteK>,
                     Tile, EA, SA, EB, SB, Mma, CopyA, LayoutA, AtomA, TransformA, CopyB, LayoutB,
                     AtomB, TransformB>
    : tessera::SplitTf32Packed<tessera::SplitTf32Types<
          tessera::MainloopSm90TmaGmmaSplitTf32<Stages, Cluster, Schedule, PromoteK>, Tile, EA, SA,
          EB, SB, Mma, CopyA, LayoutA, AtomA, TransformA, CopyB, LayoutB, AtomB, TransformB>> {};
}  // namespace cutlass::gemm::collective
