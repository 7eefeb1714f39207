// The tensor graph: a traced module as ATen ops.
//
// The graph keeps ATen's own names ("aten.linear.default") and arguments in schema order. Rewrites
// are ATen to ATen and keep the meaning, so at any stage every node can be executed by PyTorch, in
// any precision, as its own reference. View ops stay as nodes; whoever reads an operand sees
// through them with `resolve` (operand.h), which folds the chain into a strided layout over the
// storage of the value beneath. A composed spelling (GELU written out, attention written out)
// becomes the one ATen op that means it (canonical.h).
//
// Values are tensors only. Other results (SymInt, lists) do not occur: tracing is at fixed shapes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/json.h"
#include "diag/result.h"
#include "layout/strides.h"
#include "numeric/dtype.h"

namespace tessera::graph {

using ValueId = Id<struct GraphValueTag>;
using NodeId = Id<struct NodeTag>;

/// Shape and strides in elements. Strides are what PyTorch reported for the traced tensor.
struct TensorType {
  DType dtype = DType::float32;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;

  [[nodiscard]] int64_t numel() const;
  [[nodiscard]] int64_t bytes() const { return numel() * size_of(dtype); }
  /// Row-major without gaps (sizes of 1 may have any stride).
  [[nodiscard]] bool contiguous() const;
  friend bool operator==(const TensorType&, const TensorType&) = default;
};

using layout::contiguous_strides;
/// `bf16[128, 512, 768]`, with strides `:[...]` when they are not row-major.
std::string to_string(const TensorType& t);

enum class Origin : uint8_t { user_input, parameter, buffer, constant, node };

struct Value {
  std::string name;
  TensorType type;
  Origin origin = Origin::node;
  /// The module's own name of a parameter or buffer ("attn.c_attn.weight"); empty for others.
  std::string target;
  /// Where it lies, if not where the graph does: a tensor without dims may be on the host.
  std::string device;
  /// A constant that forward makes of numbers in its own text: nobody can write to it.
  bool literal = false;
  /// Facts about the content of a buffer or constant that rules rely on and the composed module
  /// guards, e.g.
  /// {"lower_triangular": true, "diagonal": 0} or {"scalar": 0.5}.
  Json facts = Json::object();
  NodeId producer;       // invalid unless origin == node
  int output_index = 0;  // which output of the producer
};

struct Argument;
using ArgumentList = std::vector<Argument>;
struct NoValue {
  friend bool operator==(NoValue, NoValue) { return true; }
};
/// One argument of an ATen call. A tensor is a ValueId; a list of tensors an ArgumentList of
/// ValueIds and NoValues.
struct Argument
    : std::variant<NoValue, ValueId, bool, int64_t, double, std::string, DType, ArgumentList> {
  using variant::variant;
};

struct Node {
  std::string name;  // unique; the traced node's name, or a new one for a rewritten node
  std::string op;    // "aten.linear.default"
  std::vector<std::pair<std::string, Argument>>
      arguments;  // by schema name, in schema order, defaults included
  std::vector<ValueId> outputs;
  std::string module;  // "transformer.h.0.attn", where it was called
  std::string place;   // "model.py:42", when known
  /// Computed from parameters and constants alone, once, and again when one of them changes.
  bool prepack = false;
  /// The traced nodes that this one stands for (itself, unless a rewrite made it).
  std::vector<std::string> covers;
  /// Why a rewrite made it ("tanh-GELU written out"); empty for a traced node.
  std::string rewritten_from;

  /// The argument of this schema name, or nullptr.
  [[nodiscard]] const Argument* find(std::string_view argument) const;
  /// The tensor argument of this name; invalid when absent or None.
  [[nodiscard]] ValueId tensor(std::string_view argument) const;
  [[nodiscard]] std::optional<int64_t> integer(std::string_view argument) const;
  /// A double, int or bool argument as a double.
  [[nodiscard]] std::optional<double> number(std::string_view argument) const;
  [[nodiscard]] std::optional<bool> flag(std::string_view argument) const;
  [[nodiscard]] std::vector<int64_t> integers(std::string_view argument) const;
  [[nodiscard]] std::string text(std::string_view argument) const;
};

struct Use {
  NodeId node;
  std::string argument;
};

/// Nodes are in execution order in `order`; erased nodes are not in it. Ids stay valid for the life
/// of the graph.
class Graph {
 public:
  std::string name;
  std::string device;  // "cuda:0", "cpu"
  Precision precision = Precision::fp32;
  std::vector<ValueId> inputs;   // user inputs, then parameters, buffers, constants
  std::vector<ValueId> outputs;  // what forward returns, in order of its flattened result
  /// Buffers that the module changes in place: the value that becomes the buffer's new content, and
  /// the buffer's target.
  std::vector<std::pair<ValueId, std::string>> mutations;
  /// Conditions that must hold in each call, and what the error says where one does not.
  std::vector<std::pair<ValueId, std::string>> assertions;
  std::vector<NodeId> order;
  Json meta = Json::object();  // torch version, module source, trace options

  [[nodiscard]] const Node& node(NodeId id) const {
    return nodes_.at(static_cast<std::size_t>(id.index));
  }
  [[nodiscard]] Node& node(NodeId id) { return nodes_.at(static_cast<std::size_t>(id.index)); }
  [[nodiscard]] const Value& value(ValueId id) const {
    return values_.at(static_cast<std::size_t>(id.index));
  }
  [[nodiscard]] Value& value(ValueId id) { return values_.at(static_cast<std::size_t>(id.index)); }
  [[nodiscard]] std::size_t value_count() const { return values_.size(); }

  ValueId add_value(Value value);
  /// Appends to `order`, or inserts before `before` when given; sets producer of its outputs.
  NodeId add_node(Node node, std::optional<NodeId> before = std::nullopt);
  /// Takes a node out of the order; its outputs must have no users left.
  void erase(NodeId id);
  /// Every use of `from` (arguments, outputs, mutations, assertions) becomes `to`.
  void replace_uses(ValueId from, ValueId to);
  /// Drops nodes whose outputs nobody uses and that have no side effect.
  void erase_dead();

  [[nodiscard]] std::vector<Use> uses(ValueId id) const;
  /// What a call must compute: outputs, what mutations write, the conditions of assertions.
  [[nodiscard]] std::vector<ValueId> results() const;
  [[nodiscard]] bool is_output(ValueId id) const;  // among the results
  [[nodiscard]] std::optional<ValueId> find_value(std::string_view name) const;
  [[nodiscard]] std::optional<NodeId> find_node(std::string_view name) const;
  /// A name that no value or node has yet: stem, stem_1, stem_2, ...
  [[nodiscard]] std::string fresh_name(std::string_view stem) const;

 private:
  std::vector<Node> nodes_;
  std::vector<Value> values_;
};

/// "aten.linear" of "aten.linear.default"; an op without an overload as it is.
std::string_view base_name(std::string_view op);
/// The node that makes the value; nullptr for inputs and an invalid value.
const Node* producer(const Graph& g, ValueId v);
/// The index of a dim that may count from the end.
std::size_t wrap_dim(int64_t dim, std::size_t rank);
/// All tensors among the arguments, in order (lists flattened).
std::vector<ValueId> tensor_arguments(const Node& node);

/// The tracer's JSON (docs/protocol.md, schema tessera.graph/1) to a Graph. Unknown ops are kept:
/// they stay in PyTorch.
Result<Graph> import_graph(const Json& j);
/// The same schema back; the composed module and the evaluator execute this.
Json to_json(const Graph& g);
/// One line a node, diff-able: `%gelu : bf16[128,512,3072] = aten.gelu(%linear, approximate="tanh")
/// # mlp.act`.
std::string to_text(const Graph& g);
/// Its line of one node.
std::string to_text(const Graph& g, NodeId node);

/// Whether a result lies elsewhere than the tensor that it is made of, as of `to(device)`.
bool changes_device(const Graph& g, const Node& n);

}  // namespace tessera::graph
