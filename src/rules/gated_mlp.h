// The body of `gated_mlp` patterns: D[m,n] = epilogue(A B0^T, A B1^T, operands...), two products
// that share A.
#pragma once

#include "rules/rules.h"

namespace tessera::rules {

struct GatedMlpBody : PatternBody {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  TensorView a;   // [m, k]
  TensorView b0;  // [n, k], the gate
  TensorView b1;  // [n, k], the value
  /// Operands 0 and 1 of the DAG are the two accumulators; operand i + 2 is `operands[i]`,
  /// broadcast to [m, n].
  pointwise::Dag epilogue;
  std::vector<TensorView> operands;
  std::vector<TensorView> outputs;

  [[nodiscard]] Json to_json() const override;
};

}  // namespace tessera::rules
