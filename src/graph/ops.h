// What the compiler knows of ATen ops, as records: one file a family in graph/ops/, one line an op.
// An op that is a function of pointwise/functions/ needs no line: the function names it. An op
// without a record is opaque: it imports, stays in PyTorch and is listed.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace tessera::graph {

enum class OpKind : uint8_t {
  pointwise,  // each output element from the same (broadcast) element of each input
  view,       // no data moves
  copy,       // data moves, values stay: contiguous, clone, _to_copy, cat, stack, pad
  reduction,  // sum, mean, amax, var, argmax, norm, ...
  normalize,  // layer_norm, rms_norm, softmax, batch_norm, group_norm, ...
  matmul,     // linear, mm, bmm, matmul, addmm, baddbmm, einsum
  attention,  // scaled_dot_product_attention and its backends
  convolution,
  pooling,
  recurrent,  // lstm, gru, rnn
  scan,       // cumsum, cumprod
  gather,     // embedding, index, gather, index_select
  loss,
  random,  // dropout with p > 0, rand*, normal
  create,  // full, zeros, arange, scalar_tensor
  opaque,
};
std::string_view name_of(OpKind kind);

class ElementCall;  // graph/pointwise_import.h

/// How an element of an op's result follows from elements of its arguments: a function of
/// pointwise/functions/, of `self` and, where it has two arguments, `other`; or a builder that
/// makes the nodes of the DAG from the arguments and returns the result's index.
struct Elements {
  constexpr Elements() = default;
  // NOLINTBEGIN(google-explicit-constructor): a record is one line
  constexpr Elements(const char* name) : function(name) {}
  constexpr Elements(int (*from)(ElementCall&)) : build(from) {}
  // NOLINTEND(google-explicit-constructor)
  explicit constexpr Elements(std::string_view name) : function(name) {}
  [[nodiscard]] constexpr bool empty() const { return function.empty() && build == nullptr; }

  std::string_view function;
  int (*build)(ElementCall&) = nullptr;
};

struct OpRecord {
  std::string_view name;  // "aten.gelu", without the overload
  OpKind kind;
  /// Empty for ops that no expression of elements states.
  Elements pointwise = {};
  /// Floating-point operations of one call; nullptr means one for each output element.
  double (*flops)(const Graph&, const Node&) = nullptr;
};

/// One file of graph/ops/: its records.
struct OpFamily {
  std::string_view name;
  std::span<const OpRecord> ops;
};

namespace ops {
std::span<const OpFamily* const> all();
}

/// All records: those of graph/ops/, and those of ops that a pointwise function names.
std::span<const OpRecord> records();
/// The record of "aten.gelu.default" or "aten.gelu"; nullptr when there is none.
const OpRecord* find_op(std::string_view op);
OpKind kind_of(const Node& node);
/// It draws random numbers. All that do run in the order in which they were traced, whether or not
/// anything reads them: each moves the generator on for those after it.
bool draws(const Node& node);
double flops_of(const Graph& g, const Node& node);
/// Bytes read and written by one unfused call: every tensor argument and output once; 0 for views.
int64_t bytes_of(const Graph& g, const Node& node);

}  // namespace tessera::graph
