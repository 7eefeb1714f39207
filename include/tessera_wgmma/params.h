// What a product kernel is told: its problem, its operands' tensor maps and its epilogue's
// operands.
//
// `Config` is a struct of constants that the generated source defines:
//   rows, columns    the tile of a block; `columns` are those multiplied, twice the result's where
//                    `products` is 2
//   element_bytes    of A and B: 4 is tf32, to which TMA rounds, or split
//   depth            K of a stage: 64 (16-bit operands), 32 (tf32) or 16 (split)
//   stages           of the ring that TMA fills
//   cluster_m, cluster_n   blocks that share loads: 2x1, 1x2 or 1x1
//   pingpong         each of the two consuming warpgroups has tiles of its own; else they share one
//   split            fp32 operands, each as two tf32 parts
//   sliced           the batches are slices of one product's K, whose sums another kernel adds
//   two_strides      batches lie in runs of `Params::inner`, at a stride inside and one between
//   a_k_major, b_k_major   whether K is the contiguous direction
//   products         2: a second B, whose product the epilogue combines with the first
//   results          outputs, `result_bytes[]` an element each
//   operands         of the epilogue, at least 1 (an array's size)
//   parts, part_operands   of the columns that have a function of their own, and all operands of
//                    those (parts.h)
//   store_buffers    boxes of shared memory that wait for their TMA store, a warpgroup
#pragma once

#include <cstdint>
#include <cuda.h>

namespace tessera_wgmma {

/// An operand of the epilogue: element 0, and strides in elements. Which direction `ld` steps in is
/// the generated reader's business.
struct Operand {
  const void* data;
  int64_t ld;
  int64_t batch;
};

/// The same where batches have two strides.
struct OperandOfRuns {
  const void* data;
  int64_t ld;
  int64_t batch, outer;
  int inner;
};
template <bool Runs>
struct OperandType {
  using Type = Operand;
};
template <>
struct OperandType<true> {
  using Type = OperandOfRuns;
};

/// The columns of a part.
struct PartColumns {
  int first, end;
};

/// An operand of a part: its element (row, group, column) is data[row % rows * ld + group *
/// distance + column].
struct PartOperand {
  const void* data;
  int64_t ld;
  int64_t distance;
  uint32_t rows;
};

template <class Config>
struct Params {
  CUtensorMap a;                    // (k, m, l) or (m, k, l); l in two dims with two strides
  CUtensorMap b[Config::products];  // (k, n, l) or (n, k, l)
  CUtensorMap d[Config::results];   // (n, m, l)
  typename OperandType<Config::two_strides>::Type x[Config::operands];
  PartColumns parts[Config::parts > 0 ? Config::parts : 1];
  PartOperand y[Config::part_operands > 0 ? Config::part_operands : 1];
  int m, n, k, l;
  int a_batches, b_batches;  // 0 where all batches share the operand, else 1
  int a_runs, b_runs;        // 0 where all runs share it
  int inner;                 // batches of a run
  int k_slice, k_step;  // sliced: K from one slice's first stage to the next's, and between its
                        // stages
  int along_n;          // tiles are dealt along n first, else along m
  int band;             // ... in bands of so many clusters across
};

/// What follows from a Config.
template <class C>
struct Derived {
  static constexpr int cluster = C::cluster_m * C::cluster_n;
  static constexpr int group_rows = C::pingpong ? C::rows : C::rows / 2;  // of a warpgroup
  static constexpr int row_blocks = group_rows / 64;
  static constexpr int result_columns = C::columns / C::products;
  static constexpr int element_bytes = C::element_bytes;
  static constexpr int mma_depth = 32 / element_bytes;  // of one wgmma
  static constexpr int a_bytes = C::rows * C::depth * element_bytes;
  static constexpr int b_bytes = C::columns * C::depth * element_bytes;
  static constexpr int stage_bytes = a_bytes + b_bytes;
  // Both tf32 parts of a stage. While one is multiplied the next is made, and the other warpgroup
  // may still multiply the one before.
  static constexpr int packed_buffers = C::split ? 3 : 0;
  static constexpr int packed_bytes = C::columns * 128;
  static constexpr int store_columns = 32;  // of one box
  static constexpr int store_bytes = 64 * store_columns * C::widest_result;
  static constexpr int packed_offset = C::stages * stage_bytes;
  static constexpr int store_offset = packed_offset + packed_buffers * packed_bytes;
  static constexpr int barrier_offset = store_offset + 2 * C::store_buffers * store_bytes;
  static constexpr int shared_bytes = barrier_offset + 2 * C::stages * 8;

  static_assert(C::rows % (C::pingpong ? 64 : 128) == 0,
                "a warpgroup multiplies 64 rows at a time");
  static_assert(result_columns % store_columns == 0, "boxes of 32 columns are stored");
  static_assert(!C::split || !C::pingpong, "both warpgroups split for each other");
  static_assert(C::split || element_bytes == 2 || (C::a_k_major && C::b_k_major),
                "wgmma reads tf32 along K");
  static_assert(stage_bytes % 1024 == 0 && a_bytes % 1024 == 0,
                "the swizzle repeats in 1024 bytes");
};

constexpr int threads = 384;  // one warpgroup that loads, two that multiply

}  // namespace tessera_wgmma
