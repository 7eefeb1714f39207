// What the rewrite families share. Each family is one function that changes the graph where it
// finds its spelling and says what it did; `canonicalize` runs them to a fixed point.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/operand.h"
#include "graph/ops.h"

#include "rewrite/canonical.h"

namespace tessera::rewrite {

using graph::Argument;
using graph::ArgumentList;
using graph::contiguous_strides;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::NoValue;
using graph::Operand;
using graph::OpKind;
using graph::Origin;
using graph::producer;
using graph::reshaped;
using graph::TensorType;
using graph::Use;
using graph::Value;
using graph::ValueId;
using graph::wrap_dim;

using RewriteLog = std::vector<Rewrite>;

/// Detach, alias, dropout that draws nothing, conversions to the same type, views that change
/// nothing, times 1, ...
bool rewrite_noops(Graph& g, RewriteLog& log);
/// Concatenations with empty pieces; slices that are all columns of a linear whose parts are
/// rotated: one split.
bool rewrite_parts(Graph& g, RewriteLog& log);
/// Operands without dims that forward makes of numbers in its own text: the number itself.
bool rewrite_numbers(Graph& g, RewriteLog& log);
/// Other names of ops (multiply, type_as, ...), max(x, dim) for its values alone.
bool rewrite_spelling(Graph& g, RewriteLog& log);
/// Two-operand einsum: a product over permuted and regrouped dims.
bool rewrite_einsum(Graph& g, RewriteLog& log);
/// What follows from parameters and constants alone is computed once (prepack): masks, position
/// tables, scaled weights.
bool rewrite_constants(Graph& g, RewriteLog& log);
/// Batch norm with fixed statistics: a scale and a shift for each channel.
bool rewrite_batch_norm(Graph& g, RewriteLog& log);
/// Operands whose batch dims have no one stride are copied before a product, as PyTorch does
/// inside.
bool rewrite_batches(Graph& g, RewriteLog& log);
/// matmul, mm and addmm with a weight, and a bias added afterwards: aten.linear.
bool rewrite_linear(Graph& g, RewriteLog& log);
/// Transpositions of a linear's rows move past it: behind it where views and copies read the
/// result, before it where its rows are attention's.
bool rewrite_row_order(Graph& g, RewriteLog& log);
/// Activations, softmax, RMSNorm and LayerNorm in any spelling, recognized by evaluating it.
bool rewrite_by_value(Graph& g, RewriteLog& log);
/// softmax(Q K^T * scale + mask) V written out, also of several masks, which become one:
/// aten.scaled_dot_product_attention; repeated key and value heads: enable_gqa.
bool rewrite_attention(Graph& g, RewriteLog& log);
bool rewrite_grouped_heads(Graph& g, RewriteLog& log);
/// Linears of one input, unless two are a gated pair: one linear over concatenated weights.
bool rewrite_sibling_linears(Graph& g, RewriteLog& log);
/// Neighbouring parts of one linear that are rotated alike (rotary embedding by halves): rotated
/// together, so that one value holds all columns.
bool rewrite_sibling_rotary(Graph& g, RewriteLog& log);
/// RMSNorm read by products alone, on a GPU: its factor behind them, its weight in theirs.
bool rewrite_norm_factor(Graph& g, RewriteLog& log);

// Reading.

/// "aten.add" of "aten.add.Tensor".
std::string_view base_op(const Node& n);
/// Of divisions "aten.div" is the one that does not round its quotient.
bool is_op(const Node& n, std::string_view base);
/// The value's only use is by `user` (however often) and it is no output.
bool used_only_by(const Graph& g, ValueId v, const std::vector<NodeId>& users);
/// A number argument, or a tensor argument that holds one number (by its facts, or made by full).
std::optional<double> scalar_argument(const Graph& g, const Node& n, std::string_view argument);
/// Through nodes that keep every value and the shape: float conversions that do not round by their
/// own meaning (graph/conversion.h), clone, contiguous, detach,
/// inert dropout. The nodes passed are appended to `passed` when given.
ValueId through_copies(const Graph& g, ValueId v, std::vector<NodeId>* passed = nullptr);
bool keeps_values(const Graph& g, const Node& n);
/// The base value is a parameter, buffer or constant, seen through views or prepack nodes.
bool is_weight(const Graph& g, ValueId v);

// Writing.

struct NewNode {
  std::string stem;
  std::string op;
  std::vector<std::pair<std::string, Argument>> arguments;
  TensorType type;
};
/// Appends one node with one output before `before`, with the place and module of `like`; returns
/// its output.
ValueId insert(Graph& g, NewNode made, NodeId before, const Node& like, bool prepack = false);
/// The dims in another order; `v` itself where that changes nothing.
ValueId permuted(Graph& g, ValueId v, const std::vector<int64_t>& dims, NodeId before,
                 const Node& like);
/// The elements in row-major order under another shape, a view or a copy; `v` itself where that
/// changes nothing.
ValueId regrouped(Graph& g, ValueId v, const std::vector<int64_t>& shape, NodeId before,
                  const Node& like);
/// A copy that lies in row-major order.
ValueId row_major_copy(Graph& g, ValueId v, NodeId before, const Node& like);
/// The value in another element type, densely laid out as PyTorch's conversion leaves it: the
/// strides of a dense value are kept, any other becomes row-major. `v` itself where that changes
/// nothing.
ValueId converted(Graph& g, ValueId v, DType type, NodeId before, const Node& like,
                  std::string stem = "to");
/// `result` stands for the output of `old` from now on; it covers what `inner` (old among them)
/// covered. Dead nodes go.
void substitute(Graph& g, RewriteLog& log, std::string what, NodeId old, ValueId result,
                const std::vector<NodeId>& inner);

/// The element of a mask-like value at an index, when it follows from creation ops, facts, views
/// and pointwise ops alone.
std::optional<double> element(const Graph& g, ValueId v, const std::vector<int64_t>& index);

}  // namespace tessera::rewrite
