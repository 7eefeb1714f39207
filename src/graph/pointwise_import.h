// Pointwise ATen nodes as nodes of a DAG of pointwise functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diag/result.h"
#include "graph/graph.h"

#include "pointwise/pointwise.h"

namespace tessera::graph {

/// Tensor arguments and the DAG indices that stand for their elements.
using TensorIndices = std::vector<std::pair<ValueId, int>>;

/// One ATen call on its way into a DAG: what the builders of op records (`Elements`) work with.
/// Arguments go by their schema names; everything returns an index into the DAG. After the first
/// failure calls do nothing.
class ElementCall {
 public:
  ElementCall(pointwise::Dag& dag, const Graph& g, const Node& node, const TensorIndices& tensors)
      : dag_(dag), g_(g), node_(node), tensors_(tensors) {}

  /// A tensor or number argument; records a failure when it is neither.
  int arg(std::string_view name);
  int arg_or(std::string_view name, double fallback);
  [[nodiscard]] bool present(std::string_view name) const;
  /// `x` times the number argument `factor` (alpha, value), which is left out when it is 1.
  int scaled(int x, std::string_view factor);
  int constant(double value);
  int call(std::string_view function, std::vector<int> arguments);
  /// Records why the form of the call is not taken.
  int failed(std::string why);

  [[nodiscard]] const Node& node() const { return node_; }
  [[nodiscard]] DType output_type() const;
  /// The function that a conversion rounds by; empty where it keeps the value (conversion.h).
  [[nodiscard]] std::string_view rounding() const;
  [[nodiscard]] bool on_gpu() const { return g_.device.starts_with("cuda"); }
  [[nodiscard]] const std::optional<std::string>& error() const { return error_; }

 private:
  pointwise::Dag& dag_;
  const Graph& g_;
  const Node& node_;
  const TensorIndices& tensors_;
  std::optional<std::string> error_;
};

/// The builder of ops that keep every value: the element of `self` or `input`.
int same_value(ElementCall& call);

/// A pointwise ATen node as DAG nodes, by its op's record (handles alpha=, scalars, approximate=,
/// clamp bounds, ...): given the DAG indices of its tensor arguments, appends and returns the index
/// of its result; an error when the form is unsupported.
Result<int> append_pointwise(pointwise::Dag& dag, const Graph& g, const Node& node,
                             const TensorIndices& tensor_arguments);

}  // namespace tessera::graph
