// The body of `row_norm` patterns: one normalization along the last logical dim, with pointwise
// work before and after.
//   x = pre(operands...);  y = normalize(x);  results = post(y, x, operands...)
#pragma once

#include <string>

#include "rules/rules.h"

namespace tessera::rules {

struct RowNormBody : PatternBody {
  /// "layer_norm", "rms_norm", "softmax", "log_softmax".
  std::string kind;
  std::vector<int64_t> rows;  // the outer logical shape
  int64_t columns = 0;
  /// layer_norm and rms_norm: (x - mean) / sqrt(var + eps), x / sqrt(mean(x^2) + eps).
  double eps = 0;
  std::vector<TensorView> operands;  // [rows..., columns] each, broadcast by stride 0
  /// Its single result is x.
  pointwise::Dag pre;
  /// Operand 0 is y (normalized, before weight and bias), operand 1 is x, operand i + 2 is
  /// `operands[i]`.
  pointwise::Dag post;
  std::vector<TensorView> outputs;  // [rows..., columns], one for each result of post

  [[nodiscard]] Json to_json() const override;
};

}  // namespace tessera::rules
