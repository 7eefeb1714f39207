// Attention on Hopper: O = softmax(scale * Q K^T) V in 16 bits, scores in registers, capped by a
// tanh or not.
//
// One warpgroup loads by TMA, the others own 64 queries each and multiply with wgmma: scores from
// shared memory, the weighted sum with its powers in registers. While a warpgroup takes powers of a
// block, its product with the block before is under way, and so are, where they take turns, the
// products of the other warpgroups (the schedule of FlashAttention-3, Shah et al. 2024).
//
// A block of threads stays on its multiprocessor and takes tiles of `queries` rows of one head, in
// an order that is fixed before: the longest first, dealt forth and back, so that all end at about
// the same time; by sections of heads, whose keys and values stay in L2 together.
//
// Plain CUDA C++, few templates: it builds in seconds. The generated source brings `Config`
// (attention_params.h) and `Mma`, the two wgmma instructions of its widths. Accumulators lie in
// registers as product.h says; two neighbouring registers, rounded, are a register of the next
// product's operand, in the same order.
#pragma once

#include "tessera/programmatic_launch.h"
#include "tessera_wgmma/attention_tiles.h"
#include "tessera_wgmma/instructions.h"
#include "tessera_wgmma/turn.h"

#if TESSERA_DEVICE_SIDE
#include "tessera_wgmma/online_softmax.h"

namespace tessera_wgmma {

template <class C, class Mma>
struct Attention {
  using Shape = AttentionShape<C>;
  using Tiles = AttentionTiles<C>;
  using Seen = SeenKeys<C>;
  using Q = typename Shape::Q;
  using K = typename Shape::K;
  using V = typename Shape::V;
  using O = typename Shape::O;
  static constexpr int groups = Shape::groups;

  /// The barriers' addresses.
  struct Barriers {
    uint32_t first;
    __device__ uint32_t q_full(int group) const { return first + group * 8; }
    __device__ uint32_t q_empty(int group) const { return q_full(groups + group); }
    __device__ uint32_t k_full(int stage) const { return q_full(2 * groups + stage); }
    __device__ uint32_t k_empty(int stage) const { return k_full(C::key_stages + stage); }
    __device__ uint32_t v_full(int stage) const { return k_full(2 * C::key_stages + stage); }
    __device__ uint32_t v_empty(int stage) const { return v_full(C::value_stages + stage); }
  };

  /// From a matrix' first byte to 16 columns that begin at a multiple of 16.
  template <class Matrix>
  static __device__ __forceinline__ uint32_t column_bytes(int column) {
    return column / Matrix::columns * Matrix::block_bytes + column % Matrix::columns * 2;
  }

  /// From the first byte of a block to that of an element, the first of 16 bytes.
  template <class Matrix>
  static __device__ __forceinline__ uint32_t swizzled(int row, int column) {
    const uint32_t straight = row * Matrix::row_bytes + column * 2;
    return straight ^ (straight >> 7 & (Matrix::row_bytes / 16 - 1)) << 4;
  }

  /// The columns of a matrix, from `row` on.
  template <class Matrix>
  static __device__ __forceinline__ void load(uint32_t to, const CUtensorMap* map, uint32_t barrier,
                                              int row, int head, int batch) {
    mbarrier_arrive_expect_tx(barrier, Matrix::bytes);
    // A thread that loads has 24 registers, too few for many at once.
    constexpr int at_once = Matrix::count <= 4 ? Matrix::count : 1;
#pragma unroll at_once
    for (int i = 0; i < Matrix::count; ++i)
      tma_load(to + i * Matrix::block_bytes, map, barrier, i * Matrix::columns, row, head, batch);
  }

  /// One thread: queries, keys and values of all tiles of the block.
  static __device__ __forceinline__ void load_all(const AttentionParams& p, uint32_t memory,
                                                  Barriers b) {
    Tiles t{p};
    Turn<C::key_stages> at_k;
    Turn<C::value_stages> at_v;
    uint32_t turn_q = 0;
    while (t.next()) {
      const int kv_head = t.head / (p.heads / p.kv_heads);
      const auto load_k = [&](int n) {
        mbarrier_wait(b.k_empty(at_k.stage), at_k.parity ^ 1);
        load<K>(memory + Shape::k_offset + at_k.stage * K::bytes, &p.k, b.k_full(at_k.stage),
                n * C::keys, kv_head, t.batch);
        at_k.next();
      };
      const auto load_v = [&](int n) {
        mbarrier_wait(b.v_empty(at_v.stage), at_v.parity ^ 1);
        load<V>(memory + Shape::v_offset + at_v.stage * V::bytes, &p.v, b.v_full(at_v.stage),
                n * C::keys, kv_head, t.batch);
        at_v.next();
      };
      int n = t.blocks - 1;
      load_k(n);
      for (int group = 0; group < groups; ++group) {
        mbarrier_wait(b.q_empty(group), turn_q ^ 1);
        load<Q>(memory + Shape::q_offset + group * Q::bytes, &p.q, b.q_full(group),
                t.row_tile * C::queries + group * 64, t.head, t.batch);
      }
      turn_q ^= 1;
      for (; n > t.first_block; --n) {
        load_k(n - 1);
        load_v(n);
      }
      load_v(n);
    }
    // The next kernel's blocks find no room before this one's end anyway.
    tessera::allow_next();
  }

  /// Descriptors that differ in their addresses, which do not carry into the other fields: the low
  /// word of the first is computed once, the high word is a constant.
  template <class Matrix, int Leading>
  struct Descriptors {
    uint32_t low;

    __device__ __forceinline__ explicit Descriptors(uint32_t address)
        : low(static_cast<uint32_t>(make(address))) {
      asm volatile("" : "+r"(low));
    }
    /// Of what is so many bytes behind the first of a stage.
    __device__ __forceinline__ uint64_t at(int stage, uint32_t bytes) const {
      return (make(0) >> 32 << 32) | (low + stage * (Matrix::bytes / 16) + bytes / 16);
    }

   private:
    static __device__ __forceinline__ uint64_t make(uint32_t address) {
      return descriptor<Matrix::row_bytes>(address, Leading, 8 * Matrix::row_bytes);
    }
  };

  // Hardware barriers: one of each warpgroup, one of its turn.
  static __device__ __forceinline__ void meet(int group) { bar_sync(1 + group, 128); }
  static __device__ __forceinline__ void wait_for_turn(int group) {
    if constexpr (C::turns) bar_sync(1 + groups + group, 256);
  }
  static __device__ __forceinline__ void end_turn(int group) {
    if constexpr (C::turns) bar_arrive(1 + groups + (group == groups - 1 ? 0 : group + 1), 256);
  }

  /// Two values become a register of 16-bit elements, those of 16 columns an operand.
  template <int N>
  static __device__ __forceinline__ void round_all(const float (&from)[8 * N],
                                                   uint32_t (&to)[N][4]) {
#pragma unroll
    for (int i = 0; i < N; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j)
        to[i][j] = rounded<C::bfloat16>(from[8 * i + 2 * j], from[8 * i + 2 * j + 1]);
  }

  template <bool On>
  struct Flag {
    static constexpr bool on = On;
  };

  /// A multiplying warpgroup.
  static __device__ __forceinline__ void multiply(const AttentionParams& p, uint32_t memory,
                                                  Barriers b, int group) {
    const int thread = static_cast<int>(threadIdx.x) % 128;
    const bool first_of_warp = thread % 32 == 0;
    const int row_in_group = thread / 32 * 16 + thread % 32 / 4, column = thread % 4 * 2;
    const Descriptors<Q, 16> q(memory + Shape::q_offset + group * Q::bytes);
    const Descriptors<K, 16> k(memory + Shape::k_offset);
    // Values are multiplied along their rows: blocks of columns are `leading` bytes apart.
    const Descriptors<V, V::block_bytes> v(memory + Shape::v_offset);
    float scores[C::keys / 2], sums[C::width / 2];
    uint32_t powers[C::keys / 16][4];  // of 16 keys, an operand
    Turn<C::key_stages> at_k;
    Turn<C::value_stages> at_v;

    // Both enqueue a product that runs on after them.
    const auto multiply_keys = [&] {
      pin(scores);
      wgmma_fence();
#pragma unroll
      for (int i = 0; i < C::depth; i += 16)
        Mma::scores(scores, q.at(0, column_bytes<Q>(i)), k.at(at_k.stage, column_bytes<K>(i)),
                    i != 0);
      wgmma_commit();
    };
    const auto multiply_values = [&] {
      pin(sums);
#pragma unroll
      for (auto& operand : powers) pin(operand);
      wgmma_fence();
#pragma unroll
      for (int i = 0; i < C::keys; i += 16) {
        Mma::values(sums, powers[i / 16], v.at(at_v.stage, i * V::row_bytes), true);
      }
      wgmma_commit();
    };
    const auto free_buffer = [&](uint32_t barrier) {
      if (first_of_warp) mbarrier_arrive(barrier);
    };
    const auto free_keys = [&] {
      free_buffer(b.k_empty(at_k.stage));
      at_k.next();
    };
    const auto free_values = [&] {
      free_buffer(b.v_empty(at_v.stage));
      at_v.next();
    };

    if (C::turns && group == 0) bar_arrive(1 + groups, 256);
    Tiles t{p};
    uint32_t turn_q = 0;
    while (t.next()) {
      OnlineSoftmax softmax{p.scale};
      const int first_row = t.row_tile * C::queries + group * 64;
      const int row = first_row + row_in_group;
      const auto hide = [&](int n) {
        const int begin = n * C::keys + column;
        int limit[2];
#pragma unroll
        for (int i = 0; i < 2; ++i) limit[i] = Seen::end(p, row + 8 * i) - begin;
        hide_columns(scores, limit);
        if constexpr (C::band) {
#pragma unroll
          for (int i = 0; i < 2; ++i) limit[i] = Seen::first(p, row + 8 * i) - begin;
          hide_columns_before(scores, limit);
        }
      };
      // A block that only rows of other groups see.
      const auto pass_over = [&] {
        wait_for_turn(group);
        end_turn(group);
        mbarrier_wait(b.k_full(at_k.stage), at_k.parity);
        free_keys();
        mbarrier_wait(b.v_full(at_v.stage), at_v.parity);
        free_values();
      };
      float correction[2];
      int n = t.blocks - 1;
      if constexpr (Seen::cut_behind) {
        const int last = C::band ? max(t.first_block, (Seen::end(p, first_row + 63) - 1) / C::keys)
                                 : (first_row + 63) / C::keys;
#pragma unroll 1
        for (; n > last; --n) pass_over();
      }
      // The last block that the group works on: of the first keys that it sees.
      const int lowest = C::band ? min(n, Seen::first(p, first_row) / C::keys) : 0;
      mbarrier_wait(b.q_full(group), turn_q);
      mbarrier_wait(b.k_full(at_k.stage), at_k.parity);
      multiply_keys();
      wgmma_wait<0>();
      pin(scores);
      free_keys();
      if (Shape::own_room && n == lowest) free_buffer(b.q_empty(group));
      if constexpr (C::capped) take_tanh(scores, p.cap_scale);
      hide(n);
      softmax(scores, correction);
      round_all(scores, powers);
#pragma unroll
      for (float& sum : sums) sum = 0;

      const auto step = [&](int key_block, auto hidden) {
        mbarrier_wait(b.k_full(at_k.stage), at_k.parity);
        wait_for_turn(group);
        multiply_keys();
        mbarrier_wait(b.v_full(at_v.stage), at_v.parity);
        multiply_values();
        end_turn(group);
        wgmma_wait<1>();
        pin(scores);
        free_keys();
        if (Shape::own_room && key_block == lowest) free_buffer(b.q_empty(group));
        if constexpr (C::capped) take_tanh(scores, p.cap_scale);
        if constexpr (decltype(hidden)::on) hide(key_block);
        bool corrected = true;
        if constexpr (C::lazy) {
          corrected = softmax.lazily(scores, correction);
        } else {
          softmax(scores, correction);
        }
        wgmma_wait<0>();
        pin(sums);
        free_values();
        round_all(scores, powers);
        if (corrected) scale_rows(sums, correction);
      };
      --n;
      if constexpr (Seen::cut_behind) {
        // Blocks that reach above the group's first row.
        const int above = C::band ? p.upper + 1 : 1;
        for (; n >= lowest && (n + 1) * C::keys > first_row + above; --n) step(n, Flag<true>{});
      }
      // In a band, those that reach below the group's last row follow.
      const int below = C::band ? Seen::first(p, first_row + 63) : 0;
      for (; n >= lowest && n * C::keys >= below; --n) step(n, Flag<false>{});
      if constexpr (C::band)
        for (; n >= lowest; --n) step(n, Flag<true>{});

      mbarrier_wait(b.v_full(at_v.stage), at_v.parity);
      multiply_values();
      softmax.finish(correction);
      wgmma_wait<0>();
      pin(sums);
      free_values();
      if constexpr (C::band)
#pragma unroll 1
        for (; n >= t.first_block; --n) pass_over();
      turn_q ^= 1;
      scale_rows(sums, correction);
      store(p, sums, memory, b, t, group, thread);
    }
    if (thread == 0) tma_store_wait_read<0>();
  }

  /// The result of a tile to memory.
  static __device__ __forceinline__ void store(const AttentionParams& p,
                                               const float (&sums)[C::width / 2], uint32_t memory,
                                               Barriers b, const Tiles& t, int group, int thread) {
    const uint32_t result = memory + Shape::o_offset + group * O::bytes;
    uint32_t results[C::width / 16][4];
    round_all(sums, results);
    // The store before has read the room, and all of the group know.
    if (thread == 0) tma_store_wait_read<0>();
    meet(group);
    // Of 16 columns a warp's rows are four matrices: rows 0 and 8 of columns 0, then of 8.
    const int lane = thread % 32, row = thread / 32 * 16 + lane % 16, half = lane / 16 * 8;
#pragma unroll
    for (int i = 0; i < C::width; i += 16) {
      const uint32_t block = result + i / O::columns * O::block_bytes;
      store_matrices(block + swizzled<O>(row, i % O::columns + half), results[i / 16]);
    }
    fence_proxy_async();
    meet(group);
    if (thread == 0) {
#pragma unroll
      for (int i = 0; i < O::count; ++i)
        tma_store(&p.o, result + i * O::block_bytes, i * O::columns,
                  t.row_tile * C::queries + group * 64, t.head, t.batch);
      tma_store_commit();
    }
    if constexpr (!Shape::own_room) {
      if (thread == 0) tma_store_wait_read<0>();
      meet(group);
      if (thread % 32 == 0) mbarrier_arrive(b.q_empty(group));
    }
  }
};

/// The kernel.
template <class C, class Mma>
__device__ __forceinline__ void attention(const AttentionParams& p) {
  using A = Attention<C, Mma>;
  using Shape = AttentionShape<C>;
  extern __shared__ __align__(1024) uint8_t generic[];
  const uint32_t memory = shared_address(generic);
  const typename A::Barriers b{memory + Shape::barrier_offset};
  const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / 128, 0);
  if (threadIdx.x == 0) {
    for (int i = 0; i < Shape::groups; ++i) {
      mbarrier_init(b.q_full(i), 1);
      mbarrier_init(b.q_empty(i), 4);
    }
    // The multiplying warps free a stage.
    for (int i = 0; i < C::key_stages; ++i) {
      mbarrier_init(b.k_full(i), 1);
      mbarrier_init(b.k_empty(i), 4 * Shape::groups);
    }
    for (int i = 0; i < C::value_stages; ++i) {
      mbarrier_init(b.v_full(i), 1);
      mbarrier_init(b.v_empty(i), 4 * Shape::groups);
    }
    prefetch_tensor_map(&p.q);
    prefetch_tensor_map(&p.k);
    prefetch_tensor_map(&p.v);
    prefetch_tensor_map(&p.o);
    fence_mbarrier_init();
  }
  __syncthreads();
  tessera::wait_for_previous();
  if (warpgroup == 0) {
    release_registers<Shape::groups == 2 ? 24 : 32>();
    if (threadIdx.x < 32 && elect_one()) A::load_all(p, memory, b);
  } else {
    claim_registers<Shape::groups == 2 ? 240 : 160>();
    A::multiply(p, memory, b, warpgroup - 1);
  }
}

}  // namespace tessera_wgmma
#endif  // TESSERA_DEVICE_SIDE
