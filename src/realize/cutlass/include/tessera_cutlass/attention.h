// Attention on Hopper: O = softmax(scale * Q K^T) V in 16 bits, scores in registers.
//
// One warpgroup loads by TMA, the others own 64 queries each and multiply with wgmma: scores from
// shared memory, the weighted sum with its powers in registers. While a warpgroup takes powers of a
// block, its product with the block before is under way, and so are, where they take turns, the
// products of the other warpgroups (the schedule of FlashAttention-3, Shah et al. 2024).
//
// A block of threads stays on its multiprocessor and takes tiles of `queries` rows of one head, in
// an order that is fixed before: the longest first, dealt forth and back, so that all end at about
// the same time; by sections of heads, whose keys and values stay in L2 together.
#pragma once

#include "tessera_cutlass/host_names.h"
//
#include <cute/tensor.hpp>
#include <cutlass/arch/barrier.h>
#include <cutlass/arch/reg_reconfig.h>
#include <cutlass/cutlass.h>
#include <cutlass/gemm/collective/builders/sm90_common.inl>
#include <cutlass/numeric_conversion.h>
#include <cutlass/pipeline/sm90_pipeline.hpp>

#include "tessera/programmatic_launch.h"
#include "tessera_cutlass/online_softmax.h"

namespace tessera {

/// `Depth` is the head dim and `Width` that of the values, both rounded up to 16; a tile has
/// `Queries` rows (64 a warpgroup), a block `Keys` keys, `Stages` of them are in shared memory.
template <class Element_, int Depth_, int Width_, int Queries_, int Keys_, int Stages_,
          bool Causal_, bool Turns_>
struct Attention {
  using Element = Element_;
  static constexpr int Depth = Depth_, Width = Width_, Queries = Queries_, Keys = Keys_;
  static constexpr int Stages = Stages_;
  static constexpr bool Causal = Causal_, Turns = Turns_;
  static constexpr int Groups = Queries / 64;
  static constexpr int Threads = 128 * (Groups + 1);
  static_assert(Queries % 64 == 0 && (Groups == 2 || Groups == 3));
  static_assert(Depth % 16 == 0 && Width % 16 == 0 && Keys % 16 == 0);

  template <int Rows, int Columns>
  using KMajorAtom =
      decltype(cutlass::gemm::collective::detail::ss_smem_selector<
               cute::GMMA::Major::K, Element, cute::Int<Rows>, cute::Int<Columns>>());
  using ValueAtom = decltype(cutlass::gemm::collective::detail::ss_smem_selector<
                             cute::GMMA::Major::MN, Element, cute::Int<Width>, cute::Int<Keys>>());
  using LayoutQ = decltype(cute::tile_to_shape(
      KMajorAtom<64, Depth>{}, cute::Shape<cute::_64, cute::Int<Depth>, cute::Int<Groups>>{}));
  using LayoutK = decltype(cute::tile_to_shape(
      KMajorAtom<Keys, Depth>{},
      cute::Shape<cute::Int<Keys>, cute::Int<Depth>, cute::Int<Stages>>{}));
  using LayoutV = decltype(cute::tile_to_shape(
      ValueAtom{}, cute::Shape<cute::Int<Width>, cute::Int<Keys>, cute::Int<Stages>>{},
      cute::Step<cute::_2, cute::_1, cute::_3>{}));
  using LayoutO = decltype(cute::tile_to_shape(
      KMajorAtom<64, Width>{}, cute::Shape<cute::_64, cute::Int<Width>, cute::Int<Groups>>{}));

  using ScoreMma = decltype(cute::make_tiled_mma(
      cute::GMMA::ss_op_selector<Element, Element, float,
                                 cute::Shape<cute::_64, cute::Int<Keys>, cute::Int<Depth>>>()));
  using ValueMma = decltype(cute::make_tiled_mma(
      cute::GMMA::rs_op_selector<Element, Element, float,
                                 cute::Shape<cute::_64, cute::Int<Width>, cute::Int<Keys>>,
                                 cute::GMMA::Major::K, cute::GMMA::Major::MN>()));

  /// rows (or columns), the other, heads, batch; one stride is the constant 1.
  using Extents = cute::Shape<int32_t, int32_t, int32_t, int32_t>;
  using Rows = cute::Stride<int64_t, cute::_1, int64_t, int64_t>;
  using Columns = cute::Stride<cute::_1, int64_t, int64_t, int64_t>;
  template <class Copy, class Strides, class Layout>
  using Tma = decltype(cute::make_tma_copy(
      Copy{},
      cute::make_tensor(cute::make_gmem_ptr(static_cast<Element*>(nullptr)), Extents{}, Strides{}),
      cute::take<0, 2>(Layout{})));
  using TmaQ = Tma<cute::SM90_TMA_LOAD, Rows, LayoutQ>;
  using TmaK = Tma<cute::SM90_TMA_LOAD, Rows, LayoutK>;
  using TmaV = Tma<cute::SM90_TMA_LOAD, Columns, LayoutV>;
  using TmaO = Tma<cute::SM90_TMA_STORE, Rows, LayoutO>;

  struct Params {
    TmaQ q;
    TmaK k;
    TmaV v;
    TmaO o;
    Extents of_q, of_k, of_v, of_o;
    int rows, columns;  // queries and keys of a head
    int row_tiles;      // of a head
    int heads, kv_heads, batch;
    int section;  // so many (batch, head) pairs before the next
    float scale;  // times log2(e)
  };

  struct Storage {
    alignas(1024) cute::array_aligned<Element, cute::cosize_v<LayoutQ>, 1024> q;
    alignas(1024) cute::array_aligned<Element, cute::cosize_v<LayoutK>, 1024> k;
    alignas(1024) cute::array_aligned<Element, cute::cosize_v<LayoutV>, 1024> v;
  };
  using Full = cutlass::arch::ClusterTransactionBarrier;
  using Empty = cutlass::arch::ClusterBarrier;
  struct Barriers {
    Full q_full[Groups];
    Empty q_empty[Groups];
    Full k_full[Stages];
    Empty k_empty[Stages];
    Full v_full[Stages];
    Empty v_empty[Stages];
  };
  /// Whether the result has room of its own; else it takes that of the queries, and the next tile's
  /// wait for its store.
  static constexpr bool OwnO =
      sizeof(Storage) + sizeof(Element) * cute::cosize_v<LayoutO> + sizeof(Barriers) <=
      cutlass::gemm::collective::detail::sm90_smem_capacity_bytes;
  static_assert(OwnO || Width == Depth,
                "a warpgroup's result would reach into the queries of another");
  struct OwnRoom {
    alignas(1024) cute::array_aligned<Element, cute::cosize_v<LayoutO>, 1024> o;
  };
  struct NoRoom {};
  struct Shared : Storage, cute::conditional_t<OwnO, OwnRoom, NoRoom> {
    Barriers barriers;
    CUTE_DEVICE Element* result() {
      if constexpr (OwnO) {
        return this->o.data();
      } else {
        return this->q.data();
      }
    }
  };

  /// The tiles of one block of threads, in order.
  struct Tile {
    int row_tile, head, batch;
    int blocks;  // of keys that it sees
  };
  struct Tiles {
    const Params& p;
    int round = 0;

    CUTE_DEVICE bool next(Tile& tile) {
      const int pairs = p.heads * p.batch;
      const int grid = static_cast<int>(gridDim.x);
      const int block = static_cast<int>(blockIdx.x);
      // Forth and back: who had the longest of one round has the shortest of the next.
      const int n = round * grid + (round % 2 == 0 ? block : grid - 1 - block);
      ++round;
      if (n >= pairs * p.row_tiles) return false;
      const int whole = p.section * p.row_tiles;
      const int section = n / whole;
      const int first = section * p.section;
      const int here = min(p.section, pairs - first);
      const int rest = n - section * whole;
      const int pair = first + rest % here;
      // Every second section the shortest first, the last not: without jumps between sections the
      // shares stay even.
      const bool rising = ((pairs - 1) / p.section - section) % 2 != 0;
      tile.row_tile = rising ? rest / here : p.row_tiles - 1 - rest / here;
      tile.head = pair % p.heads;
      tile.batch = pair / p.heads;
      const int seen = Causal ? min(p.columns, (tile.row_tile + 1) * Queries) : p.columns;
      tile.blocks = (seen + Keys - 1) / Keys;
      return true;
    }
  };

  /// Which buffer, and the parity of its turn.
  struct Turn {
    int stage = 0;
    uint32_t phase = 0;
    CUTE_DEVICE void operator++() {
      if (++stage == Stages) {
        stage = 0;
        phase ^= 1;
      }
    }
  };

  CUTE_DEVICE static void load(const Params& p, Shared& shared) {
    using namespace cute;
    const Tensor q = make_tensor(make_smem_ptr(shared.q.data()), LayoutQ{});
    const Tensor k = make_tensor(make_smem_ptr(shared.k.data()), LayoutK{});
    const Tensor v = make_tensor(make_smem_ptr(shared.v.data()), LayoutV{});
    const Tensor from_q = p.q.get_tma_tensor(p.of_q);
    const Tensor from_k = p.k.get_tma_tensor(p.of_k);
    const Tensor from_v = p.v.get_tma_tensor(p.of_v);
    Barriers& b = shared.barriers;
    const auto parts = [](const auto& tma, const auto& smem, const auto& gmem) {
      return tma_partition(tma, Int<0>{}, Layout<_1>{}, group_modes<0, 2>(smem),
                           group_modes<0, 2>(gmem));
    };
    constexpr int bytes_q = 64 * Depth * sizeof(Element);
    constexpr int bytes_k = Keys * Depth * sizeof(Element);
    constexpr int bytes_v = Keys * Width * sizeof(Element);
    Tiles tiles{p};
    Tile t;
    Turn at_k, at_v;
    uint32_t turn_q = 0;
    while (tiles.next(t)) {
      const int kv_head = t.head / (p.heads / p.kv_heads);
      const auto part_q = parts(
          p.q, q,
          local_tile(from_q(_, _, t.head, t.batch), Shape<_64, Int<Depth>>{}, make_coord(_, _0{})));
      const auto part_k = parts(p.k, k,
                                local_tile(from_k(_, _, kv_head, t.batch),
                                           Shape<Int<Keys>, Int<Depth>>{}, make_coord(_, _0{})));
      const auto part_v = parts(p.v, v,
                                local_tile(from_v(_, _, kv_head, t.batch),
                                           Shape<Int<Width>, Int<Keys>>{}, make_coord(_0{}, _)));
      const auto load_k = [&](int n) {
        b.k_empty[at_k.stage].wait(at_k.phase ^ 1);
        b.k_full[at_k.stage].arrive_and_expect_tx(bytes_k);
        copy(p.k.with(reinterpret_cast<uint64_t&>(b.k_full[at_k.stage]), 0), get<0>(part_k)(_, n),
             get<1>(part_k)(_, at_k.stage));
        ++at_k;
      };
      const auto load_v = [&](int n) {
        b.v_empty[at_v.stage].wait(at_v.phase ^ 1);
        b.v_full[at_v.stage].arrive_and_expect_tx(bytes_v);
        copy(p.v.with(reinterpret_cast<uint64_t&>(b.v_full[at_v.stage]), 0), get<0>(part_v)(_, n),
             get<1>(part_v)(_, at_v.stage));
        ++at_v;
      };
      int n = t.blocks - 1;
      load_k(n);
      for (int group = 0; group < Groups; ++group) {
        b.q_empty[group].wait(turn_q ^ 1);
        b.q_full[group].arrive_and_expect_tx(bytes_q);
        copy(p.q.with(reinterpret_cast<uint64_t&>(b.q_full[group]), 0),
             get<0>(part_q)(_, t.row_tile * Groups + group), get<1>(part_q)(_, group));
      }
      turn_q ^= 1;
      for (; n > 0; --n) {
        load_k(n - 1);
        load_v(n);
      }
      load_v(0);
    }
    allow_next();
  }

  /// Enqueues A B into C, which starts at zero where `Zero`. wgmma runs on after this.
  template <bool Zero, class Mma, class A, class B, class C>
  CUTE_DEVICE static void multiply(Mma& mma, const A& a, const B& b, C& c) {
    using namespace cute;
    mma.accumulate_ = Zero ? GMMA::ScaleOut::Zero : GMMA::ScaleOut::One;
    warpgroup_fence_operand(c);
    warpgroup_arrive();
    CUTE_UNROLL
    for (int k = 0; k < size<2>(a); ++k) {
      gemm(mma, a(_, _, k), b(_, _, k), c);
      mma.accumulate_ = GMMA::ScaleOut::One;
    }
    warpgroup_commit_batch();
  }

  /// A tensor in registers as the array that it is.
  template <class Tensor>
  CUTE_DEVICE static auto& values_of(Tensor& tensor) {
    using Values = float[decltype(cute::size(tensor))::value];
    return *reinterpret_cast<Values*>(tensor.data());
  }

  template <class From, class To>
  CUTE_DEVICE static void convert(const From& from, To& to) {
    constexpr int values = decltype(cute::size(from))::value;
    static_assert(values == decltype(cute::size(to))::value);
    using Source = cutlass::Array<float, values>;
    using Result = cutlass::Array<Element, values>;
    const cutlass::NumericArrayConverter<Element, float, values> round;
    *reinterpret_cast<Result*>(to.data()) = round(*reinterpret_cast<const Source*>(from.data()));
  }

  // Hardware barriers that this kernel names: one of each warpgroup, one of its turn.
  CUTE_DEVICE static void meet(int group) { cutlass::arch::NamedBarrier::sync(128, group); }
  CUTE_DEVICE static void wait_for_turn(int group) {
    if constexpr (Turns) cutlass::arch::NamedBarrier::sync(256, Groups + group);
  }
  CUTE_DEVICE static void end_turn(int group) {
    if constexpr (Turns) cutlass::arch::NamedBarrier::arrive(256, Groups + (group + 1) % Groups);
  }

  CUTE_DEVICE static void compute(const Params& p, Shared& shared, int group) {
    using namespace cute;
    const int thread = static_cast<int>(threadIdx.x) % 128;
    const bool first_of_warp = thread % 32 == 0;
    const int row_in_group = thread / 32 * 16 + thread % 32 / 4, column = thread % 4 * 2;
    Barriers& b = shared.barriers;
    const Tensor q = make_tensor(make_smem_ptr(shared.q.data()), LayoutQ{})(_, _, group);
    const Tensor k = make_tensor(make_smem_ptr(shared.k.data()), LayoutK{});
    const Tensor v = make_tensor(make_smem_ptr(shared.v.data()), LayoutV{});
    Tensor result = make_tensor(make_smem_ptr(shared.result()), LayoutO{})(_, _, group);
    ScoreMma score_mma;
    ValueMma value_mma;
    const auto score_part = score_mma.get_thread_slice(thread);
    const auto value_part = value_mma.get_thread_slice(thread);
    const Tensor f_q = score_part.partition_fragment_A(q);
    const Tensor f_k = score_part.partition_fragment_B(k);
    const Tensor f_v = value_part.partition_fragment_B(v);
    Tensor scores = partition_fragment_C(score_mma, Shape<_64, Int<Keys>>{});
    Tensor sums = partition_fragment_C(value_mma, Shape<_64, Int<Width>>{});
    // Value j of the scores is value j of the operand that they become.
    Tensor powers = value_part.partition_fragment_A(
        make_tensor(static_cast<Element*>(nullptr), Shape<_64, Int<Keys>>{}));
    const auto store = make_tiled_copy_C(Copy_Atom<SM90_U32x4_STSM_N, Element>{}, value_mma);
    const auto store_part = store.get_thread_slice(thread);
    const Tensor to_o = p.o.get_tma_tensor(p.of_o);

    const auto free_buffer = [&](Empty& barrier) {
      if (first_of_warp) barrier.arrive();
    };
    if (Turns && group == 0) cutlass::arch::NamedBarrier::arrive(256, Groups);
    Tiles tiles{p};
    Tile t;
    Turn at_k, at_v;
    uint32_t turn_q = 0;
    while (tiles.next(t)) {
      OnlineSoftmax softmax{p.scale};
      const int row = t.row_tile * Queries + group * 64 + row_in_group;
      const int first_row = t.row_tile * Queries + group * 64;
      const auto hide = [&](int n) {
        const int begin = n * Keys + column;
        int limit[2];
        CUTE_UNROLL
        for (int i = 0; i < 2; ++i)
          limit[i] = (Causal ? min(p.columns, row + 8 * i + 1) : p.columns) - begin;
        hide_columns(values_of(scores), limit);
      };
      float correction[2];
      int n = t.blocks - 1;
      b.q_full[group].wait(turn_q);
      b.k_full[at_k.stage].wait(at_k.phase);
      multiply<true>(score_mma, f_q, f_k(_, _, _, at_k.stage), scores);
      warpgroup_wait<0>();
      warpgroup_fence_operand(scores);
      free_buffer(b.k_empty[at_k.stage]);
      ++at_k;
      if (OwnO && n == 0) free_buffer(b.q_empty[group]);
      hide(n);
      softmax(values_of(scores), correction);
      convert(scores, powers);
      clear(sums);

      const auto step = [&](int key_block, auto hidden) {
        b.k_full[at_k.stage].wait(at_k.phase);
        wait_for_turn(group);
        multiply<true>(score_mma, f_q, f_k(_, _, _, at_k.stage), scores);
        b.v_full[at_v.stage].wait(at_v.phase);
        multiply<false>(value_mma, powers, f_v(_, _, _, at_v.stage), sums);
        end_turn(group);
        warpgroup_wait<1>();
        warpgroup_fence_operand(scores);
        free_buffer(b.k_empty[at_k.stage]);
        ++at_k;
        if (OwnO && key_block == 0) free_buffer(b.q_empty[group]);
        if constexpr (hidden) hide(key_block);
        softmax(values_of(scores), correction);
        warpgroup_wait<0>();
        warpgroup_fence_operand(sums);
        free_buffer(b.v_empty[at_v.stage]);
        ++at_v;
        convert(scores, powers);
        scale_rows(values_of(sums), correction);
      };
      if constexpr (Causal) {
        // Blocks that reach above the group's first row.
        for (--n; n >= 0 && (n + 1) * Keys > first_row + 1; --n) step(n, true_type{});
      } else {
        --n;
      }
      for (; n >= 0; --n) step(n, false_type{});

      b.v_full[at_v.stage].wait(at_v.phase);
      multiply<false>(value_mma, powers, f_v(_, _, _, at_v.stage), sums);
      softmax.finish(correction);
      warpgroup_wait<0>();
      warpgroup_fence_operand(sums);
      free_buffer(b.v_empty[at_v.stage]);
      ++at_v;
      turn_q ^= 1;
      scale_rows(values_of(sums), correction);
      Tensor rounded = make_tensor_like<Element>(sums);
      convert(sums, rounded);
      // The store before has read the room, and all of the group know.
      if (thread == 0) tma_store_wait<0>();
      meet(group);
      copy(store, store_part.retile_S(rounded), store_part.partition_D(result));
      tma_store_fence();
      meet(group);
      if (thread == 0) {
        const Tensor tile = local_tile(to_o(_, _, t.head, t.batch), Shape<_64, Int<Width>>{},
                                       make_coord(t.row_tile * Groups + group, _0{}));
        const auto part = p.o.get_slice(_0{});
        copy(p.o, part.partition_S(result), part.partition_D(tile));
        tma_store_arrive();
      }
      if constexpr (!OwnO) {
        if (thread == 0) tma_store_wait<0>();
        meet(group);
        free_buffer(b.q_empty[group]);
      }
    }
    if (thread == 0) tma_store_wait<0>();
  }

  CUTE_DEVICE static void run(const Params& p, Shared& shared) {
    const int group = static_cast<int>(cutlass::canonical_warp_group_idx());
    if (threadIdx.x == 0) {
      Barriers& b = shared.barriers;
      for (int i = 0; i < Groups; ++i) {
        b.q_full[i].init(1);
        b.q_empty[i].init(4);
      }
      for (int i = 0; i < Stages; ++i) {
        b.k_full[i].init(1);
        b.v_full[i].init(1);
        b.k_empty[i].init(4 * Groups);
        b.v_empty[i].init(4 * Groups);
      }
      cute::prefetch_tma_descriptor(p.q.get_tma_descriptor());
      cute::prefetch_tma_descriptor(p.k.get_tma_descriptor());
      cute::prefetch_tma_descriptor(p.v.get_tma_descriptor());
      cute::prefetch_tma_descriptor(p.o.get_tma_descriptor());
    }
    cutlass::arch::fence_barrier_init();
    __syncthreads();
    wait_for_previous();
    if (group == 0) {
      cutlass::arch::warpgroup_reg_dealloc<Groups == 2 ? 24 : 32>();
      if (cutlass::canonical_warp_idx_sync() == 0 && cute::elect_one_sync()) load(p, shared);
    } else {
      cutlass::arch::warpgroup_reg_alloc<Groups == 2 ? 240 : 160>();
      compute(p, shared, group - 1);
    }
  }
};

#if TESSERA_DEVICE_SIDE
template <class Kernel>
__global__ void __launch_bounds__(Kernel::Threads, 1)
    attention_kernel(const __grid_constant__ typename Kernel::Params params) {
  extern __shared__ char memory[];
  Kernel::run(params, *reinterpret_cast<typename Kernel::Shared*>(memory));
}
#endif

}  // namespace tessera
