// The body of `pointwise` patterns: results[i] = dag(operands...), or a reduction of them along
// trailing dims.
#pragma once

#include <string>

#include "rules/rules.h"

namespace tessera::rules {

struct PointwiseBody : PatternBody {
  /// One group for each index space: outputs of one group are written from the same loop. Rotary
  /// embedding and concatenation are several groups that write slices of one output.
  struct Group {
    std::vector<int64_t> shape;
    std::vector<TensorView> operands;  // broadcast to shape
    pointwise::Dag dag;
    /// One for each result; slices of output tensors where several groups share one.
    std::vector<TensorView> outputs;
  };
  std::vector<Group> groups;
  /// "" (none), "sum", "mean", "amax", "amin", "prod": applied to each result over the last
  /// `reduced_dims` dims.
  std::string reduction;
  int reduced_dims = 0;
  /// After the reduction, on the kept elements: operand 0 is the reduced value, one result. Empty:
  /// the reduced value itself.
  pointwise::Dag finish;

  [[nodiscard]] Json to_json() const override;
};

}  // namespace tessera::rules
