// The body of `gemm` patterns: D[l,m,n] = epilogue(sum_k A[l,m,k] * B[l,n,k], operands...).
#pragma once

#include "rules/rules.h"

namespace tessera::rules {

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
  graph::PointwiseDag epilogue;
  std::vector<TensorView> operands;
  std::vector<TensorView> outputs;  // [l, m, n] each, one for each result of the DAG

  [[nodiscard]] Json to_json() const override;
};

}  // namespace tessera::rules
