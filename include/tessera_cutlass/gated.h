// Two products that share A in one CUTLASS kernel: D = epilogue(A B0^T, A B1^T, ...).
//
// The mainloop is CUTLASS' own over a B with twice the rows: its N is the pair (n, 2), the second
// mode from one weight to the other, whatever their distance in memory. TMA loads the rows
// [n0, n0 + half) of both as one tile, so nothing is packed, and the accumulators of D[m, n] in
// both products lie in one thread: wgmma gives a thread the same two columns of each group of 8,
// and `half` is a multiple of 8. The epilogue zips the two halves of a thread's accumulators into
// pairs (GatedPairing proves which) and hands them to CUTLASS' own epilogue for the tile of half
// the width, whose visitor tree starts with GateFetch and ValueFetch.
#pragma once

#include "tessera_cutlass/restrided.h"

namespace tessera {

/// One output's accumulators in both products.
struct alignas(8) AccumulatorPair {
  float first, second;
};

/// Where each value of the half-wide tile's fragment finds its two accumulators in the full one.
/// `FullTile` and `HalfTile` are (M, N) tiles; columns [half, 2 half) of the full one are the
/// second product's. Index of a position: m + BM n.
template <class FullMma, class FullTile, class HalfMma, class HalfTile>
struct GatedPairing {
  static constexpr auto full() { return FullMma{}.thrfrg_C(cute::make_layout(FullTile{})); }
  static constexpr auto half() { return HalfMma{}.thrfrg_C(cute::make_layout(HalfTile{})); }
  /// (value of the half fragment) -> value of the full fragment, first product.
  static constexpr auto low() {
    return cute::composition(cute::left_inverse(cute::layout<1>(full())), cute::layout<1>(half()));
  }
  static constexpr int positions = cute::size(HalfTile{});
  static constexpr int values = cute::size<1>(decltype(half()){});
  /// From the first product's accumulator to the second's, in values.
  static constexpr int high_offset() {
    return cute::left_inverse(cute::layout<1>(full()))(cute::Int<positions>{});
  }

  /// Every value of every thread: a position is the thread's part plus the value's, the threads'
  /// parts are the same in both, and the values' differ by 0 and by one half tile.
  static constexpr bool exact() {
    if (cute::size<1>(full()) != 2 * values || cute::size<0>(full()) != cute::size<0>(half())) {
      return false;
    }
    for (int t = 0; t < cute::size<0>(half()); ++t) {
      if (cute::layout<0>(full())(t) != cute::layout<0>(half())(t)) return false;
    }
    for (int v = 0; v < values; ++v) {
      const int position = cute::layout<1>(half())(v);
      if (cute::layout<1>(full())(low()(v)) != position) return false;
      if (cute::layout<1>(full())(low()(v) + high_offset()) != position + positions) return false;
    }
    return true;
  }
};

/// The visitor's leaves: the first (0) or the second (1) product's accumulators out of the pairs.
template <int Product>
struct AccumulatorFetch : cutlass::epilogue::fusion::Sm90VisitorImpl<> {
  struct SharedStorage {};
  struct Arguments {};
  using Params = Arguments;
  template <class ProblemShape>
  static constexpr Params to_underlying_arguments(ProblemShape const&, Arguments const& args,
                                                  void*) {
    return args;
  }
  template <class ProblemShape>
  static bool can_implement(ProblemShape const&, Arguments const&) {
    return true;
  }
  template <class ProblemShape>
  static size_t get_workspace_size(ProblemShape const&, Arguments const&) {
    return 0;
  }
  template <class ProblemShape>
  static cutlass::Status initialize_workspace(ProblemShape const&, Arguments const&, void*,
                                              cudaStream_t, cutlass::CudaHostAdapter* = nullptr) {
    return cutlass::Status::kSuccess;
  }
  CUTLASS_HOST_DEVICE AccumulatorFetch() {}
  CUTLASS_HOST_DEVICE AccumulatorFetch(Params const&, SharedStorage const&) {}

  struct Callbacks : cutlass::epilogue::fusion::EmptyConsumerStoreCallbacks {
    template <int N>
    CUTLASS_DEVICE cutlass::Array<float, N> visit(cutlass::Array<AccumulatorPair, N> const& pairs,
                                                  int, int, int) {
      cutlass::Array<float, N> r;
      CUTLASS_PRAGMA_UNROLL
      for (int i = 0; i < N; ++i) r[i] = Product == 0 ? pairs[i].first : pairs[i].second;
      return r;
    }
  };
  template <bool, class... Args>
  CUTLASS_DEVICE auto get_consumer_store_callbacks(
      cutlass::epilogue::fusion::ConsumerStoreArgs<Args...> const&) {
    return Callbacks{};
  }
};

/// (M, (n, 2), K, L) -> (M, n, K, L).
template <class Shape>
CUTLASS_HOST_DEVICE constexpr auto one_of_two(Shape const& shape) {
  return cute::replace<1>(shape, cute::get<1, 0>(shape));
}

/// The tile's place in that shape. A raster whose width does not divide the tiles counts on beyond
/// n; CUTLASS carries what is beyond into the second mode, and must find it out of bounds here.
template <class HalfTile, class Coord, class Shape>
CUTLASS_HOST_DEVICE constexpr auto tile_of_one(Coord const& coord, Shape const& shape) {
  const int tiles = cute::ceil_div(cute::get<1, 0>(shape), cute::get<1>(HalfTile{}));
  return cute::replace<1>(coord, cute::get<1, 0>(coord) + cute::get<1, 1>(coord) * tiles);
}

/// `Base` is CUTLASS' epilogue for the half-wide tile, `HalfMma` a TiledMMA of that tile.
template <class Base, class HalfMma>
struct GatedEpilogue : Base {
  using HalfTile = decltype(cute::take<0, 2>(typename Base::CtaTileMNK{}));
  using TensorStorage = typename Base::TensorStorage;
  /// `exchanged`: the second product's weight lies at the lower address.
  struct Arguments : Base::Arguments {
    bool exchanged = false;
  };
  struct Params : Base::Params {
    bool exchanged;
  };

  CUTLASS_HOST_DEVICE GatedEpilogue(Params const& params, TensorStorage& storage)
      : Base(params, storage), exchanged_(params.exchanged) {}

  template <class Shape>
  static constexpr Params to_underlying_arguments(Shape const& shape, Arguments const& args,
                                                  void* workspace) {
    return {Base::to_underlying_arguments(one_of_two(shape), args, workspace), args.exchanged};
  }
  template <class Shape>
  static size_t get_workspace_size(Shape const& shape, Arguments const& args) {
    return Base::get_workspace_size(one_of_two(shape), args);
  }
  template <class Shape>
  static cutlass::Status initialize_workspace(Shape const& shape, Arguments const& args,
                                              void* workspace, cudaStream_t stream,
                                              cutlass::CudaHostAdapter* adapter = nullptr) {
    return Base::initialize_workspace(one_of_two(shape), args, workspace, stream, adapter);
  }
  template <class Shape>
  static bool can_implement(Shape const& shape, Arguments const& args) {
    return Base::can_implement(one_of_two(shape), args);
  }
  template <class Tile>
  CUTLASS_HOST_DEVICE static constexpr int get_load_pipe_increment(Tile) {
    return Base::get_load_pipe_increment(typename Base::CtaTileMNK{});
  }
  template <class Tile>
  CUTLASS_HOST_DEVICE static constexpr int get_store_pipe_increment(Tile tile) {
    return get_load_pipe_increment(tile);
  }

  template <class Shape, class Tile, class Coord, class Mma>
  CUTLASS_DEVICE auto load(typename Base::LoadPipeline pipeline,
                           typename Base::LoadPipelineState state, Shape shape, Tile, Coord coord,
                           Mma, int thread, TensorStorage& storage, int subtile = -1) {
    return Base::load(pipeline, state, one_of_two(shape), typename Base::CtaTileMNK{},
                      tile_of_one<HalfTile>(coord, shape), HalfMma{}, thread, storage, subtile);
  }

  template <class Shape, class Tile, class Coord, class Engine, class Layout, class Mma>
  CUTLASS_DEVICE auto store(typename Base::LoadPipeline load_pipeline,
                            typename Base::LoadPipelineState load_state,
                            typename Base::StorePipeline store_pipeline,
                            typename Base::StorePipelineState store_state, Shape shape, Tile,
                            Coord coord, cute::Tensor<Engine, Layout> accumulators, Mma, int thread,
                            TensorStorage& storage, int subtile = -1) {
    using Pairing = GatedPairing<Mma, decltype(cute::take<0, 2>(Tile{})), HalfMma, HalfTile>;
    static_assert(Pairing::exact(), "the two products' accumulators do not meet in one thread");
    static_assert(cute::size(Layout{}) == 2 * Pairing::values);
    auto pairs = cute::make_tensor<AccumulatorPair>(cute::partition_shape_C(HalfMma{}, HalfTile{}));
    constexpr auto low = Pairing::low();
    // A branch, not a choice for each value: those cost a quarter of the instructions of a gate.
    if (exchanged_) {
      asm volatile("");
      CUTLASS_PRAGMA_UNROLL
      for (int v = 0; v < Pairing::values; ++v) {
        const float first = accumulators(low(v) + Pairing::high_offset());
        accumulators(low(v) + Pairing::high_offset()) = accumulators(low(v));
        accumulators(low(v)) = first;
      }
    }
    CUTLASS_PRAGMA_UNROLL
    for (int v = 0; v < Pairing::values; ++v) {
      pairs(v) = {accumulators(low(v)), accumulators(low(v) + Pairing::high_offset())};
    }
    return Base::store(load_pipeline, load_state, store_pipeline, store_state, one_of_two(shape),
                       typename Base::CtaTileMNK{}, tile_of_one<HalfTile>(coord, shape), pairs,
                       HalfMma{}, thread, storage, subtile);
  }

 private:
  bool exchanged_;
};

/// CUTLASS' mainloop `Flat` with N = (n, 2): B's stride goes on to the other weight.
template <class Flat, class Tile>
struct PairedMainloop {
  using Stride = typename Flat::StrideB;
  using StrideB =
      decltype(cute::replace<0>(Stride{}, cute::make_stride(cute::get<0>(Stride{}), int64_t{})));
  static_assert(!cutlass::gemm::detail::is_major<0, Stride>() ||
                    cute::get<1, 0>(Tile{}) * sizeof(typename Flat::ElementB) % 128 == 0,
                "a box of one weight must fill whole swizzle rows: TMA swizzles each by itself");
  using CollectiveOp =
      typename Restrided<Flat, Tile, typename Flat::StrideA, StrideB>::CollectiveOp;
};

/// B's stride of that: rows or k `ld` apart, the two weights `distance` elements.
template <class StrideB>
StrideB paired_stride(int64_t ld, int64_t distance, int64_t batch) {
  StrideB s{};
  if constexpr (cute::is_static_v<decltype(cute::get<0, 0>(s))>) {
    cute::get<1>(s) = ld;
  } else {
    cute::get<0, 0>(s) = ld;
  }
  cute::get<0, 1>(s) = distance;
  cute::get<2>(s) = batch;
  return s;
}

}  // namespace tessera

/// The compute type of visitors that start with accumulators out of pairs.
namespace tessera {
template <class Visitor>
struct PairVisitorTraits {
  using DispatchPolicy = void;
  using Callbacks = Visitor;
  using Operation = cutlass::epilogue::fusion::FusionOperation;
  using CtaTile_MNK = void;
  using EpilogueTile_MN = void;
  using ElementCompute = float;
};
}  // namespace tessera

namespace cutlass::epilogue::fusion {
template <class Root, class... Rest>
struct FusionCallbacksTraits<
    Sm90TreeVisitor<Root, tessera::AccumulatorFetch<0>, tessera::AccumulatorFetch<1>, Rest...>>
    : tessera::PairVisitorTraits<Sm90TreeVisitor<Root, tessera::AccumulatorFetch<0>,
                                                 tessera::AccumulatorFetch<1>, Rest...>> {};
template <class Edges, class... Rest>
struct FusionCallbacksTraits<Sm90TopologicalVisitor<float, Edges, tessera::AccumulatorFetch<0>,
                                                    tessera::AccumulatorFetch<1>, Rest...>>
    : tessera::PairVisitorTraits<Sm90TopologicalVisitor<float, Edges, tessera::AccumulatorFetch<0>,
                                                        tessera::AccumulatorFetch<1>, Rest...>> {};
}  // namespace cutlass::epilogue::fusion
