// What an attention kernel is told, and how its shared memory is laid out.
//
// `Config` is a struct of constants that the generated source defines:
//   depth, width     the head dim and that of the values, both rounded up to 16
//   queries          of a tile, 64 a multiplying warpgroup, two or three of them
//   keys             of a block
//   key_stages, value_stages   blocks of keys and of values that are in shared memory
//   causal           a query sees the keys up to its own number
//   band             instead, a query sees keys between two distances from its own number; with
//                    neither it sees all
//   capped           scores s become softcap * tanh(s / softcap)
//   turns            warpgroups issue their products in turns
//   lazy             sums are corrected only where a row's highest score has grown by much
//   bfloat16         the elements' type, else float16
#pragma once

#include <cstdint>
#include <cuda.h>

namespace tessera_wgmma {

struct AttentionParams {
  CUtensorMap q, k, v, o;  // (column, row, head, batch)
  int rows, columns;       // queries and keys of a head
  int row_tiles;           // of a head
  int heads, kv_heads, batch;
  int section;       // so many (batch, head) pairs before the next
  float scale;       // of the scores, or of the tanh of capped ones, times log2(e)
  float cap_scale;   // of what the tanh takes
  int lower, upper;  // of a band: query i sees keys i + lower to i + upper, one at least
};

/// A matrix of 16-bit elements in shared memory: blocks of the most columns that a swizzle takes
/// and that divide it, one behind the other. The swizzle is as long as a row of a block.
template <int Rows, int Columns>
struct Blocks {
  static constexpr int columns = Columns % 64 == 0 ? 64 : Columns % 32 == 0 ? 32 : 16;
  static constexpr int count = Columns / columns;
  static constexpr int rows = Rows;
  static constexpr int row_bytes = 2 * columns;
  static constexpr int block_bytes = Rows * row_bytes;
  static constexpr int bytes = count * block_bytes;
  static_assert(Columns % 16 == 0, "no swizzle is shorter than 16 columns");
  static_assert(block_bytes % (8 * row_bytes) == 0, "the swizzle repeats in 8 rows");
};

/// What follows from a Config.
template <class C>
struct AttentionShape {
  static constexpr int groups = C::queries / 64;  // that multiply
  static constexpr int threads = 128 * (groups + 1);
  using Q = Blocks<64, C::depth>;  // of a warpgroup
  using K = Blocks<C::keys, C::depth>;
  using V = Blocks<C::keys, C::width>;
  using O = Blocks<64, C::width>;

  static constexpr int swizzle_repeats = 1024;
  static constexpr int after(int offset, int bytes) {
    return (offset + bytes + swizzle_repeats - 1) / swizzle_repeats * swizzle_repeats;
  }
  static constexpr int q_offset = 0;
  static constexpr int k_offset = after(q_offset, groups* Q::bytes);
  static constexpr int v_offset = after(k_offset, C::key_stages* K::bytes);
  static constexpr int end_of_operands = after(v_offset, C::value_stages* V::bytes);

  // Barriers of 8 bytes: full and empty, of the queries of each warpgroup and of each stage.
  static constexpr int barriers = 2 * (groups + C::key_stages + C::value_stages);
  static constexpr int most_bytes = 227 * 1024;
  /// Whether the result has room of its own; else it takes that of the queries, and the next tile's
  /// wait for its store.
  static constexpr bool own_room = end_of_operands + groups * O::bytes + barriers * 8 <= most_bytes;
  static constexpr int o_offset = own_room ? end_of_operands : q_offset;
  static constexpr int barrier_offset =
      own_room ? after(end_of_operands, groups* O::bytes) : end_of_operands;
  static constexpr int shared_bytes = barrier_offset + barriers * 8;

  static_assert(C::queries % 64 == 0 && (groups == 2 || groups == 3), "two or three warpgroups");
  static_assert(C::keys % 16 == 0, "powers are multiplied by 16 keys at a time");
  static_assert(own_room || C::width == C::depth,
                "a warpgroup's result would reach into the queries of another");
  static_assert(shared_bytes <= most_bytes, "a block's shared memory");
};

}  // namespace tessera_wgmma
