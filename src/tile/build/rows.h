// Row kernels: every row is read once, kept on chip, reduced, and written once. In three parts:
// clang-format off
//   x      = pre(operands)             a pointwise DAG, e.g. the residual sum; its results may be stored
//   y      = normalize(x) along a row  layer norm, RMS norm, softmax, log-softmax, or a reduction
//   result = post(y, x, operands)      e.g. y * weight + bias, where weight is an operand with row strides 0
// clang-format on
#pragma once

#include <optional>

#include "tile/build/common.h"

namespace tessera::tile::build {

enum class RowKind : uint8_t { layer_norm, rms_norm, softmax, log_softmax, sum, mean, max };
std::string_view name_of(RowKind k);
Result<RowKind> parse_row_kind(std::string_view name);

struct RowProblem {
  std::string name = "rows";
  RowKind kind = RowKind::layer_norm;
  std::vector<int64_t> row_shape;  // dims that count rows, slowest first
  int64_t columns = 1;          // the normalized dim (or dims, when every view has them contiguous)
  double eps = 1e-5;            // layer_norm, rms_norm
  std::vector<Tensor> tensors;  // the launch's order: inputs, then outputs
  std::vector<StridedView> operands;  // strides: row_shape's dims, then the column
  pointwise::Dag pre;  // over operands; result 0 is normalized; empty: operand 0 itself
  std::vector<StridedView>
      stored;  // where pre's results 0, 1, ... are stored (may be fewer, also none)
  /// When pre's result 0 is stored, its stored (rounded) value is what is normalized, as a chain of
  /// library calls does.
  bool normalize_stored = true;
  /// When set, x is rounded to this type before it is used: what a library call that stores it
  /// would read.
  std::optional<DType> round_x;
  /// Operand 0 is y, operand 1 is x, operand i + 2 is operands[i]; empty: y. After a reduction only
  /// y may be read.
  pointwise::Dag post;
  std::vector<StridedView>
      outputs;  // of post's results; for sum, mean, max the column stride is ignored
};

struct RowConfig {
  int threads_per_row = 32;  // host: 1
  int rows_per_block = 4;
  int vector = 4;                     // elements of one access; host: ignored
  int rows_per_thread = 1;            // independent rows in flight in each thread
  int blocks_per_multiprocessor = 0;  // 0: one tile a block; else persistent
  int64_t chunk =
      0;  // 0: the row stays in registers; else columns a step, and the row is read twice
};
Json to_json(const RowConfig& c);
RowConfig row_config_from_json(const Json& j);

/// Fails with TS0401 when the config does not fit the problem on this target.
Result<Program> rows(const RowProblem& p, const RowConfig& c, Target target);
/// Sensible configs, the most promising first; at most 16.
std::vector<RowConfig> row_configs(const RowProblem& p, const Limits& limits);

}  // namespace tessera::tile::build
