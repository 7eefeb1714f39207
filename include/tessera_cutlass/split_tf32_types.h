/* What both split-tf32 mainloops have in common: the types and constants that CUTLASS' kernels read
 * of a CollectiveMma, what they ask of its parameters, and the host's checks. */
#pragma once
#include "cute/tensor.hpp"
#include "cutlass/cutlass.h"
#include "cutlass/gemm/collective/collective_mma_decl.hpp"
#include "cutlass/pipeline/pipeline.hpp"
#include "tessera_cutlass/split_tf32_policy.h"
#include "tessera_cutlass/split_tf32_steps.h"

namespace tessera {

/// The parameters are CollectiveMma's.
template <class Policy, class TileShape_, class ElementA_, class StrideA_, class ElementB_,
          class StrideB_, class TiledMma_, class GmemTiledCopyA_, class SmemLayoutAtomA_,
          class SmemCopyAtomA_, class TransformA_, class GmemTiledCopyB_, class SmemLayoutAtomB_,
          class SmemCopyAtomB_, class TransformB_>
struct SplitTf32Types {
  using DispatchPolicy = Policy;
  using TileShape = TileShape_;
  using ClusterShape = typename Policy::ClusterShape;
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
  using ArchTag = typename Policy::ArchTag;
  using CtaShape_MNK = decltype(cute::shape_div(TileShape{}, ClusterShape{}));
  using MainloopPipeline = cutlass::PipelineTmaAsync<Policy::Stages>;
  using PipelineParams = typename MainloopPipeline::Params;
  using PipelineState = cutlass::PipelineState<Policy::Stages>;
  static constexpr int NumProducerThreadEvents = 1;

  static constexpr int kStages = Policy::Stages;
  static constexpr int kBlockM = cute::size<0>(TileShape{});
  static constexpr int kBlockN = cute::size<1>(TileShape{});
  static constexpr int kGroup = kSplitGroup;
  static constexpr int kWidth = kSplitGroupWidth;
  static constexpr int kPromoteTiles = Policy::PromoteK / kGroup;
  static constexpr int kThreads = cute::size(TiledMma{});

  static_assert(cute::size<2>(TileShape{}) == kGroup, "the K extent of the tile must be 16");
  static_assert(cute::is_same_v<ElementA, float> && cute::is_same_v<ElementB, float>,
                "operands are fp32");
  static_assert(cute::is_same_v<typename TiledMma::ValTypeA, cutlass::tfloat32_t> &&
                    cute::is_same_v<typename TiledMma::ValTypeB, cutlass::tfloat32_t> &&
                    cute::is_same_v<ElementAccumulator, float>,
                "the MMA must be tf32 x tf32 -> fp32");
  static_assert(cute::is_base_of_v<cute::GMMA::DescriptorIterator, typename TiledMma::FrgTypeA> &&
                    cute::is_base_of_v<cute::GMMA::DescriptorIterator, typename TiledMma::FrgTypeB>,
                "the MMA must read both operands from shared memory");
  static_assert(cute::is_void_v<SmemCopyAtomA> && cute::is_void_v<SmemCopyAtomB>,
                "operands go from shared memory straight into the tensor core");
  static_assert(kBlockM * kBlockN / kThreads <= 96,
                "two accumulators of more than 96 registers each do not fit a thread");

  /// Shared memory of so many packed tiles of both operands.
  template <int Tiles>
  using PackedA = decltype(cute::tile_to_shape(
      SmemLayoutAtomA{}, cute::Shape<cute::Int<kBlockM>, cute::Int<kWidth>, cute::Int<Tiles>>{}));
  template <int Tiles>
  using PackedB = decltype(cute::tile_to_shape(
      SmemLayoutAtomB{}, cute::Shape<cute::Int<kBlockN>, cute::Int<kWidth>, cute::Int<Tiles>>{}));

  struct Arguments {
    float const* ptr_A = nullptr;
    StrideA dA{};
    float const* ptr_B = nullptr;
    StrideB dB{};
  };

  template <class ProblemShape>
  static bool can_implement(ProblemShape const& problem, Arguments const& args) {
    using split_detail::tma_addressable;
    auto const [m, n, k, l] = cute::append<4>(problem, 1);
    return m > 0 && n > 0 && k > 0 && l > 0 && tma_addressable(args.ptr_A, args.dA) &&
           tma_addressable(args.ptr_B, args.dB);
  }

  template <class Params>
  CUTLASS_DEVICE static void prefetch_tma_descriptors(Params const& params) {
    cute::prefetch_tma_descriptor(params.tma_a.get_tma_descriptor());
    cute::prefetch_tma_descriptor(params.tma_b.get_tma_descriptor());
  }

  /// Producer, after its last tile: a block must not exit while a peer of its cluster may still
  /// signal it.
  CUTLASS_DEVICE void load_tail(MainloopPipeline pipeline, PipelineState write) {
    if (cute::elect_one_sync()) pipeline.producer_tail(write);
  }

  /// Consumers: their mma() leaves nothing in flight.
  CUTLASS_DEVICE void mma_tail(MainloopPipeline, PipelineState, int) {}
};

}  // namespace tessera
