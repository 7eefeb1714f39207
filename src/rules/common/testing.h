// Builds small graphs by hand for the tests of rules.
#pragma once

#include <algorithm>
#include <fmt/format.h>
#include <string>
#include <utility>
#include <vector>

#include "rules/rules.h"

namespace tessera::rules::testing {

using graph::Argument;
using graph::ArgumentList;
using graph::ValueId;
using Shape = std::vector<int64_t>;
using Arguments = std::vector<std::pair<std::string, Argument>>;

inline Argument ints(const Shape& values) {
  ArgumentList list;
  for (int64_t v : values) list.emplace_back(v);
  return list;
}

class GraphBuilder {
 public:
  explicit GraphBuilder(DType dtype = DType::bfloat16, Precision precision = Precision::bf16)
      : dtype_(dtype) {
    g.name = "test";
    g.device = "cuda:0";
    g.precision = precision;
  }

  graph::Graph g;

  ValueId input(std::string name, Shape shape, std::optional<DType> dtype = {}) {
    return leaf(std::move(name), std::move(shape), graph::Origin::user_input, dtype);
  }
  ValueId parameter(std::string name, Shape shape) {
    return leaf(std::move(name), std::move(shape), graph::Origin::parameter, {});
  }

  /// A call with one output of this shape; row-major unless strides are given.
  ValueId call(std::string op, Arguments arguments, Shape shape, Shape strides = {},
               std::optional<DType> dtype = {}) {
    graph::Value v;
    const auto dot = op.find('.', 5);
    v.name = g.fresh_name(op.substr(5, dot == std::string::npos ? dot : dot - 5));
    v.type = {dtype.value_or(dtype_), shape,
              strides.empty() ? graph::contiguous_strides(shape) : std::move(strides)};
    const ValueId id = g.add_value(v);
    graph::Node node;
    node.name = v.name;
    node.op = std::move(op);
    node.arguments = std::move(arguments);
    node.outputs = {id};
    node.covers = {v.name};
    g.add_node(std::move(node));
    return id;
  }

  [[nodiscard]] const graph::TensorType& type(ValueId v) const { return g.value(v).type; }

  ValueId linear(ValueId x, int64_t n, bool bias = true) {
    Shape shape = type(x).shape;
    const int64_t k = shape.back();
    shape.back() = n;
    const ValueId w = parameter(g.fresh_name("w"), {n, k});
    Argument b = graph::NoValue{};
    if (bias) b = parameter(g.fresh_name("b"), {n});
    return call("aten.linear.default", {{"input", x}, {"weight", w}, {"bias", b}}, shape);
  }
  ValueId unary(std::string op, ValueId x) {
    return call("aten." + op + ".default", {{"self", x}}, type(x).shape, type(x).strides);
  }
  ValueId gelu(ValueId x) {
    return call("aten.gelu.default", {{"self", x}, {"approximate", std::string("tanh")}},
                type(x).shape, type(x).strides);
  }
  /// add and sub with alpha = 1, mul: the result has the larger operand's layout.
  ValueId binary(std::string op, ValueId x, ValueId y) {
    Arguments a{{"self", x}, {"other", y}};
    if (op != "mul") a.emplace_back("alpha", int64_t{1});
    const auto& t = type(x).numel() >= type(y).numel() ? type(x) : type(y);
    return call("aten." + op + ".Tensor", std::move(a), t.shape, t.strides);
  }
  ValueId layer_norm(ValueId x) {
    const int64_t c = type(x).shape.back();
    return call("aten.layer_norm.default",
                {{"input", x},
                 {"normalized_shape", ints({c})},
                 {"weight", parameter(g.fresh_name("ln_w"), {c})},
                 {"bias", parameter(g.fresh_name("ln_b"), {c})},
                 {"eps", 1e-5},
                 {"cudnn_enable", true}},
                type(x).shape);
  }
  ValueId view(ValueId x, Shape shape) {
    return call("aten.view.default", {{"self", x}, {"size", ints(shape)}}, shape);
  }
  ValueId transpose(ValueId x, int64_t a, int64_t b) {
    Shape shape = type(x).shape;
    Shape strides = type(x).strides;
    std::swap(shape[static_cast<std::size_t>(a)], shape[static_cast<std::size_t>(b)]);
    std::swap(strides[static_cast<std::size_t>(a)], strides[static_cast<std::size_t>(b)]);
    return call("aten.transpose.int", {{"self", x}, {"dim0", a}, {"dim1", b}}, shape, strides,
                type(x).dtype);
  }
  ValueId slice(ValueId x, int64_t dim, int64_t start, int64_t end) {
    Shape shape = type(x).shape;
    shape[static_cast<std::size_t>(dim)] = end - start;
    return call("aten.slice.Tensor",
                {{"self", x}, {"dim", dim}, {"start", start}, {"end", end}, {"step", int64_t{1}}},
                shape, type(x).strides, type(x).dtype);
  }
  ValueId cat(std::vector<ValueId> pieces, int64_t dim) {
    Shape shape = type(pieces[0]).shape;
    shape[static_cast<std::size_t>(dim)] = 0;
    ArgumentList list;
    for (ValueId v : pieces) {
      shape[static_cast<std::size_t>(dim)] += type(v).shape[static_cast<std::size_t>(dim)];
      list.emplace_back(v);
    }
    return call("aten.cat.default", {{"tensors", list}, {"dim", dim}}, shape);
  }
  ValueId sdpa(ValueId q, ValueId k, ValueId v, bool causal, bool gqa = false,
               Argument mask = graph::NoValue{}, double dropout = 0) {
    Shape shape = type(q).shape;
    shape.back() = type(v).shape.back();
    return call("aten.scaled_dot_product_attention.default",
                {{"query", q},
                 {"key", k},
                 {"value", v},
                 {"attn_mask", mask},
                 {"dropout_p", dropout},
                 {"is_causal", causal},
                 {"scale", graph::NoValue{}},
                 {"enable_gqa", gqa}},
                shape);
  }
  ValueId contiguous(ValueId x) {
    return call("aten.clone.default",
                {{"self", x}, {"memory_format", std::string("contiguous_format")}}, type(x).shape);
  }
  void output(ValueId v) { g.outputs.push_back(v); }
  [[nodiscard]] graph::NodeId node(ValueId v) const { return g.value(v).producer; }

 private:
  ValueId leaf(std::string name, Shape shape, graph::Origin origin, std::optional<DType> dtype) {
    graph::Value v;
    v.name = std::move(name);
    v.type = {dtype.value_or(dtype_), shape, graph::contiguous_strides(shape)};
    v.origin = origin;
    if (origin == graph::Origin::parameter) v.target = v.name;
    const ValueId id = g.add_value(v);
    g.inputs.push_back(id);
    return id;
  }

  DType dtype_;
};

/// A pre-norm transformer block with merged qkv: the outputs of norm, projections, attention and
/// MLP in `block`.
inline ValueId transformer_block(GraphBuilder& b, ValueId x, int64_t heads) {
  const Shape shape = b.type(x).shape;
  const int64_t B = shape[0], T = shape[1], C = shape[2], D = C / heads;
  const ValueId qkv = b.linear(b.layer_norm(x), 3 * C);
  auto head = [&](int64_t i) {
    return b.transpose(
        b.call("aten.view.default",
               {{"self", b.slice(qkv, 2, i * C, (i + 1) * C)}, {"size", ints({B, T, heads, D})}},
               {B, T, heads, D}, {T * 3 * C, 3 * C, D, 1}),
        1, 2);
  };
  const ValueId q = head(0), k = head(1), v = head(2);
  const ValueId o = b.sdpa(q, k, v, true);
  const ValueId merged = b.view(b.contiguous(b.transpose(o, 1, 2)), {B, T, C});
  const ValueId x1 = b.binary("add", x, b.linear(merged, C));
  const ValueId up = b.gelu(b.linear(b.layer_norm(x1), 4 * C));
  return b.binary("add", x1, b.linear(up, C));
}

/// Patterns of one rule.
inline std::vector<Pattern> of_rule(const Discovery& d, std::string_view rule) {
  std::vector<Pattern> result;
  std::copy_if(d.patterns.begin(), d.patterns.end(), std::back_inserter(result),
               [&](const Pattern& p) { return p.rule == rule; });
  return result;
}
inline const Rule& rule(std::string_view name) {
  for (const Rule* r : all())
    if (r->name == name) return *r;
  throw std::logic_error("no such rule");
}
inline bool rejected(const std::vector<Rejection>& list, graph::NodeId n, std::string_view reason) {
  return std::any_of(list.begin(), list.end(), [&](const Rejection& r) {
    return std::find(r.nodes.begin(), r.nodes.end(), n) != r.nodes.end() &&
           r.reason.find(reason) != std::string::npos;
  });
}

/// The pattern's body, whose type its rule knows.
template <class Body>
const Body& body(const Pattern& p) {
  return dynamic_cast<const Body&>(*p.body);
}

/// [rows, columns] of heads of 16 with their halves rotated, and the other columns of y.
inline ValueId rotated(GraphBuilder& b, ValueId y, int64_t columns) {
  const int64_t rows = b.type(y).shape[0];
  const Shape whole{rows, columns / 16, 16};
  const Shape halves{rows, columns / 16, 8};
  const int64_t n = b.type(y).shape[1];
  const ValueId x =
      b.call("aten.view.default", {{"self", b.slice(y, 1, 0, columns)}, {"size", ints(whole)}},
             whole, {n, 16, 1});
  const ValueId minus = b.call("aten.neg.default", {{"self", b.slice(x, 2, 8, 16)}}, halves, {});
  const ValueId across = b.cat({minus, b.slice(x, 2, 0, 8)}, 2);
  const auto times = [&](ValueId v, const char* table) {
    return b.call("aten.mul.Tensor", {{"self", v}, {"other", b.input(table, {rows, 1, 16})}},
                  whole);
  };
  const ValueId sum = b.binary("add", times(x, "cos"), times(across, "sin"));
  return b.view(sum, {rows, columns});
}

}  // namespace tessera::rules::testing
