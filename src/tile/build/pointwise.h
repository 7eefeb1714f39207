// Pointwise kernels: one pass over an iteration space, any strided (broadcast, sliced, shifted)
// inputs and outputs. And full reductions of such an expression, in two kernels with partial
// results in the workspace.
#pragma once

#include "tile/build/rows.h"

namespace tessera::tile::build {

struct PointwiseProblem {
  std::string name = "pointwise";
  std::vector<int64_t> shape;         // the iteration space
  std::vector<Tensor> tensors;        // the launch's order: inputs, then outputs
  std::vector<StridedView> operands;  // strides over `shape`
  pointwise::Dag dag;                 // over operands
  std::vector<StridedView> outputs;   // one a result; no element may be written twice
};

struct PointwiseConfig {
  int threads = 256;                  // host: ignored
  int vector = 4;                     // elements of one access; host: ignored
  int unroll = 2;                     // accesses in flight in each thread; host: ignored
  int blocks_per_multiprocessor = 0;  // 0: one tile a block; else persistent
  int64_t columns = 8192;             // host: elements a task at most
};
Json to_json(const PointwiseConfig& c);
PointwiseConfig pointwise_config_from_json(const Json& j);

/// Fails with TS0401 when the config does not fit, TS0411 when a view leaves its tensor.
Result<Program> pointwise(const PointwiseProblem& p, const PointwiseConfig& c, Target target);
std::vector<PointwiseConfig> pointwise_configs(const PointwiseProblem& p, const Limits& limits);

/// sum, mean or max of the expression `dag` (one result) over all of `shape`; `post` maps the
/// scalar (operand 0). Output 0 is one element. `kind` is RowKind::sum, mean or max. The config is
/// that of the row kernel of each half.
Result<Program> full_reduction(const PointwiseProblem& p, RowKind kind, const pointwise::Dag& post,
                               const RowConfig& c, Target target);

}  // namespace tessera::tile::build
