// The body of `gemm` patterns: D[l,m,n] = epilogue(sum_k A[l,m,k] * B[l,n,k], operands...), or
// columns of D in parts that each have an epilogue of their own.
#pragma once

#include "rules/rules.h"

namespace tessera::rules {

/// Columns [first, first + columns) of a result [m, n], row-major.
struct ColumnPart {
  int64_t first = 0;
  int64_t columns = 0;
  /// 0: every value by itself; operand 0 of the DAG is the accumulator, its one result the value.
  /// Above: the columns fall in groups of `period`. Operands 0 and 1 are the accumulators of
  /// columns c and c + period / 2 of a group (c < period / 2), results 0 and 1 their values: rotary
  /// embedding by rotated halves.
  int64_t period = 0;
  pointwise::Dag dag;
  /// Further operands of the DAG: [rows..., columns], or [rows..., columns / period, period / 2] of
  /// a part with a period. `rows...` is m, or (m1, m2) with m1 m2 = m.
  std::vector<TensorView> operands;

  [[nodiscard]] int accumulators() const { return period == 0 ? 1 : 2; }
  /// The values are the accumulators.
  [[nodiscard]] bool plain() const;
  [[nodiscard]] Json to_json() const;
};

struct GemmBody : PatternBody {
  /// l; an operand shared by all batches has stride 0 there. Batches without a common stride are
  /// two dims of every view, [l1, l2, ...] with l1 l2 = l, in the place of one.
  int64_t batch = 1;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  TensorView a;  // [l, m, k]
  TensorView b;  // [l, n, k]
  /// Operand 0 of the DAG is the accumulator; operand i + 1 is `operands[i]`, broadcast to [l, m,
  /// n].
  pointwise::Dag epilogue;
  std::vector<TensorView> operands;
  std::vector<TensorView> outputs;  // [l, m, n] each, one for each result of the DAG
  /// All columns of the one result, from left to right; empty where `epilogue` says it all. With
  /// parts there is one batch and the epilogue is the accumulator itself.
  std::vector<ColumnPart> parts;

  [[nodiscard]] Json to_json() const override;
};

}  // namespace tessera::rules
