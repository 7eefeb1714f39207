// A subgraph that was proposed: every value is a function of its indices, which asks the functions
// of the values before it. Nothing is kept, so that it needs no memory; a reduction is computed
// again for every element that reads it.
#include "rules/proposed.h"

#include <algorithm>
#include <fmt/ranges.h>
#include <map>
#include <numeric>
#include <optional>

#include "base/text.h"
#include "graph/operand.h"
#include "graph/ops.h"
#include "graph/pointwise_import.h"

#include "skeleton/common/moved.h"
#include "skeleton/common/text.h"
#include "skeleton/skeleton.h"

namespace tessera::skeleton {
namespace {

using graph::ValueId;
using Indices = std::vector<std::string>;

/// The body's subgraph as a graph of its own: inputs i0, ..., nodes n0, ... with values n0.0, ...
Result<graph::Graph> graph_of(const Json& subgraph) {
  Json values = Json::array(), nodes = Json::array(), inputs = Json::array();
  const auto add = [&](const std::string& name, const Json& type, const char* origin) {
    Json v = type;
    v["name"] = name;
    v["origin"] = origin;
    values.push_back(std::move(v));
  };
  for (const Json& type : subgraph.at("inputs")) {
    const std::string name = fmt::format("i{}", inputs.size());
    add(name, type, "user_input");
    inputs.push_back(name);
  }
  for (const Json& n : subgraph.at("nodes")) {
    Json node = {{"name", fmt::format("n{}", nodes.size())},
                 {"op", n.at("op")},
                 {"arguments", n.at("arguments")}};
    node["outputs"] = Json::array();
    for (const Json& type : n.at("outputs")) {
      const std::string name = fmt::format("n{}.{}", nodes.size(), node["outputs"].size());
      add(name, type, "node");
      node["outputs"].push_back(name);
    }
    nodes.push_back(std::move(node));
  }
  return graph::import_graph({{"schema", "tessera.graph/1"},
                              {"name", "proposed"},
                              {"values", std::move(values)},
                              {"nodes", std::move(nodes)},
                              {"inputs", std::move(inputs)},
                              {"outputs", subgraph.at("outputs")}});
}

class Writer {
 public:
  explicit Writer(const graph::Graph& g) : g_(g) {
    for (std::size_t i = 0; i < g.inputs.size(); ++i) tensors_[g.inputs[i]] = static_cast<int>(i);
  }

  /// A node that no loop is known for is left to the reader, with its place.
  void write() {
    for (const graph::NodeId n : g_.order) {
      const graph::Node& node = g_.node(n);
      if (graph::resolve(g_, node.outputs.at(0)).base != node.outputs.at(0)) continue;  // a view
      const Indices at = indices(type_of(node.outputs[0]).shape.size(), "a");
      const auto body = node.outputs.size() == 1 ? body_of(node, at) : cannot(node);
      text_ += "// " + trim(graph::to_text(g_, n)) + "\n";
      if (body) {
        text_ += function_of(node.outputs[0], at, *body);
        continue;
      }
      const std::string op(graph::base_name(node.op));
      missing_.push_back(op);
      text_ += fmt::format("#error \"{}: write what one element of its result is\"\n", op);
      for (const ValueId v : node.outputs)
        text_ += function_of(v, indices(type_of(v).shape.size(), "a"), "return 0.0f;\n");
    }
  }

  /// The element of a value at these indices, as an expression.
  std::string element(ValueId v, const Indices& at) const {
    const graph::Operand o = graph::resolve(g_, v);
    if (const auto input = tensors_.find(o.base); input != tensors_.end()) {
      return load({.tensor = input->second,
                   .dtype = type_of(o.base).dtype,
                   .shape = o.shape,
                   .strides = o.strides,
                   .offset = o.offset},
                  at);
    }
    const graph::TensorType& t = type_of(o.base);
    Indices mine = at;
    if (o.base != v) {
      std::string linear = std::to_string(o.offset);
      for (std::size_t d = 0; d < at.size(); ++d)
        if (o.shape[d] != 1 && o.strides[d] != 0)
          linear += fmt::format(" + {} * {}", at[d], o.strides[d]);
      mine.clear();
      for (std::size_t d = 0; d < t.shape.size(); ++d)
        mine.push_back(t.shape[d] == 1
                           ? "0"
                           : fmt::format("({}) / {} % {}", linear, t.strides[d], t.shape[d]));
    }
    return fmt::format("{}({})", function(g_.value(o.base).name), fmt::join(mine, ", "));
  }

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] const std::vector<std::string>& missing() const { return missing_; }
  [[nodiscard]] const graph::TensorType& type_of(ValueId v) const { return g_.value(v).type; }

 private:
  static Indices indices(std::size_t rank, const char* prefix) {
    Indices out;
    for (std::size_t d = 0; d < rank; ++d) out.push_back(fmt::format("{}{}", prefix, d));
    return out;
  }
  /// "n3.0" is made by `value3`, "n3.1" by `value3_1`.
  static std::string function(const std::string& name) {
    const std::size_t dot = name.find('.');
    const std::string of = "value" + name.substr(1, dot - 1), output = name.substr(dot + 1);
    return output == "0" ? of : of + "_" + output;
  }
  [[nodiscard]] std::string function_of(ValueId v, const Indices& at,
                                        const std::string& body) const {
    std::string parameters;
    for (const std::string& a : at)
      parameters +=
          (parameters.empty() ? "[[maybe_unused]] Index " : ", [[maybe_unused]] Index ") + a;
    return fmt::format("const auto {} = [&]({}) -> float {{\n{}}};\n", function(g_.value(v).name),
                       parameters, indented(body));
  }
  static Result<std::string> cannot(const graph::Node& node) {
    return error(fail(no_skeleton, "a skeleton has no loop for {}", node.op));
  }

  /// Elements of an operand that is broadcast to the result.
  std::string broadcast(ValueId v, const Indices& at) const {
    const auto& shape = graph::resolve(g_, v).shape;
    Indices mine;
    for (std::size_t d = 0; d < shape.size(); ++d)
      mine.push_back(shape[d] == 1 ? "0" : at[at.size() - shape.size() + d]);
    return element(v, mine);
  }

  Result<std::string> body_of(const graph::Node& node, const Indices& at) {
    const std::string_view op = graph::base_name(node.op);
    const bool reduces = graph::kind_of(node) == graph::OpKind::reduction;
    // PyTorch lets dim 0 and -1 of a tensor without dims pass.
    if (at.empty() && !reduces && (node.find("dim") || node.find("dims"))) return cannot(node);
    if (op == "aten.cumsum") return scan(node, at, "0", "s += {};");
    if (op == "aten.cumprod") return scan(node, at, "1", "s *= {};");
    if (op == "aten.softmax" || op == "aten.log_softmax") return softmax(node, at);
    if (op == "aten.cat") return joined(node, at);
    if (op == "aten.mm" || op == "aten.bmm" || op == "aten.linear") return product(node, at);
    if (const ValueId self = node.tensor("self"); self.valid()) {
      if (const auto from = moved(node, graph::resolve(g_, self).shape, at))
        return from->condition.empty() ? fmt::format("return {};\n", element(self, from->at))
                                       : fmt::format("return {} ? {} : {};\n", from->condition,
                                                     element(self, from->at), from->otherwise);
    }
    if (op == "aten.view" || op == "aten.reshape" || op == "aten._unsafe_view")
      return reshaped(node, at);
    if (reduces) return reduction(node, at);
    return pointwise_of(node, at);
  }

  Result<std::string> pointwise_of(const graph::Node& node, const Indices& at) {
    pointwise::Dag dag;
    graph::TensorIndices given;
    std::vector<std::string> loads;
    for (const ValueId v : graph::tensor_arguments(node)) {
      given.emplace_back(v, static_cast<int>(dag.nodes.size()));
      pointwise::Dag::Node operand;
      operand.kind = pointwise::Dag::Node::Kind::operand;
      operand.operand = static_cast<int>(loads.size());
      dag.nodes.push_back(operand);
      loads.push_back(broadcast(v, at));
    }
    const auto result = graph::append_pointwise(dag, g_, node, given);
    if (!result) return cannot(node);
    dag.results = {*result};
    std::vector<std::string> results;
    const std::string body = evaluate(dag, loads, "x", results);
    return body + fmt::format("return {};\n", results.front());
  }

  std::vector<std::size_t> dims_of(const graph::Node& node, std::size_t rank) const {
    std::vector<std::size_t> out;
    if (const auto one = node.integer("dim")) return {graph::wrap_dim(*one, rank)};
    for (const int64_t d : node.integers("dim")) out.push_back(graph::wrap_dim(d, rank));
    if (out.empty())
      for (std::size_t d = 0; d < rank; ++d) out.push_back(d);
    return out;
  }

  Result<std::string> reduction(const graph::Node& node, const Indices& at) {
    const std::string_view op = graph::base_name(node.op);
    static const std::map<std::string_view, std::pair<const char*, const char*>> kinds = {
        {"aten.sum", {"0", "s += {};\n"}},
        {"aten.mean", {"0", "s += {};\n"}},
        {"aten.prod", {"1", "s *= {};\n"}},
        {"aten.amax", {"-tsr_inf()", "s = tsr_maximum(float(s), {});\n"}},
        {"aten.amin", {"tsr_inf()", "s = tsr_minimum(float(s), {});\n"}}};
    const auto kind = kinds.find(op);
    if (kind == kinds.end()) return cannot(node);
    const ValueId self = node.tensor("self");
    const auto shape = graph::resolve(g_, self).shape;
    const auto dims = dims_of(node, shape.size());
    const bool kept = at.size() == shape.size();
    Indices mine;
    std::string text = fmt::format("accumulator s = {};\n", kind->second.first);
    int level = 0;
    int64_t count = 1;
    for (std::size_t d = 0, next = 0; d < shape.size(); ++d) {
      const bool reduced = std::find(dims.begin(), dims.end(), d) != dims.end();
      mine.push_back(reduced ? fmt::format("r{}", d) : at[kept ? d : next]);
      if (!reduced || kept) ++next;
      if (!reduced) continue;
      text +=
          indented(fmt::format("for (Index r{0} = 0; r{0} < {1}; ++r{0})\n", d, shape[d]), level++);
      count *= shape[d];
    }
    text += indented(fmt::format(fmt::runtime(kind->second.second), element(self, mine)), level);
    return text + (op == "aten.mean" ? fmt::format("return float(s / {});\n", count)
                                     : "return float(s);\n");
  }

  /// `step`: one statement that takes in an element.
  Result<std::string> scan(const graph::Node& node, const Indices& at, const char* start,
                           const char* step) {
    const std::size_t d = graph::wrap_dim(node.integer("dim").value_or(0), at.size());
    Indices mine = at;
    mine[d] = "r";
    return fmt::format(
        "accumulator s = {};\nfor (Index r = 0; r <= {}; ++r) {}\nreturn float(s);\n", start, at[d],
        fmt::format(fmt::runtime(step), element(node.tensor("self"), mine)));
  }

  Result<std::string> softmax(const graph::Node& node, const Indices& at) {
    const ValueId self = node.tensor("self");
    const std::size_t d = graph::wrap_dim(node.integer("dim").value_or(-1), at.size());
    Indices mine = at;
    mine[d] = "r";
    const bool log = graph::base_name(node.op) == "aten.log_softmax";
    return fmt::format(
        "float m = -tsr_inf();\nfor (Index r = 0; r < {0}; ++r) m = tsr_maximum(m, {1});\n"
        "accumulator s = 0;\nfor (Index r = 0; r < {0}; ++r) s += tsr_exp({1} - m);\n"
        "return {2};\n",
        graph::resolve(g_, self).shape[d], element(self, mine),
        fmt::format(fmt::runtime(log ? "{} - m - tsr_log(float(s))" : "tsr_exp({} - m) / float(s)"),
                    element(self, at)));
  }

  /// Each part has the indices that follow the part before it.
  Result<std::string> joined(const graph::Node& node, const Indices& at) {
    const std::size_t d = graph::wrap_dim(node.integer("dim").value_or(0), at.size());
    std::string text;
    int64_t before = 0;
    for (const ValueId part : graph::tensor_arguments(node)) {
      const auto& shape = graph::resolve(g_, part).shape;
      if (shape.size() != at.size()) return cannot(node);
      Indices mine = at;
      if (before > 0) mine[d] = fmt::format("({} - {})", at[d], before);
      before += shape[d];
      text += fmt::format("if ({} < {}) return {};\n", at[d], before, element(part, mine));
    }
    return text + "return 0.0f;\n";
  }

  Result<std::string> product(const graph::Node& node, const Indices& at) {
    const bool linear = graph::base_name(node.op) == "aten.linear";
    const ValueId a = node.tensor(linear ? "input" : "self"),
                  b = node.tensor(linear ? "weight" : "mat2");
    Indices of_a = at, of_b = at;
    of_a.back() = "k";
    if (linear)
      of_b = {at.back(), "k"};
    else
      of_b[of_b.size() - 2] = "k";
    const ValueId bias = linear ? node.tensor("bias") : ValueId{};
    return fmt::format(
        "accumulator s = {};\nfor (Index k = 0; k < {}; ++k) s += {} * {};\nreturn float(s);\n",
        bias.valid() ? element(bias, {at.back()}) : "0", graph::resolve(g_, a).shape.back(),
        element(a, of_a), element(b, of_b));
  }

  /// The element at the same place in row-major order.
  Result<std::string> reshaped(const graph::Node& node, const Indices& at) {
    const auto& shape = type_of(node.outputs[0]).shape;
    const auto from = graph::resolve(g_, node.tensor("self")).shape;
    std::string linear = "0";
    for (std::size_t d = 0; d < at.size(); ++d)
      linear = fmt::format("({} * {} + {})", linear, shape[d], at[d]);
    Indices mine(from.size());
    int64_t below = 1;
    for (std::size_t d = from.size(); d-- > 0; below *= from[d])
      mine[d] = fmt::format("l / {} % {}", below, from[d]);
    return fmt::format("const Index l = {};\nreturn {};\n", linear,
                       element(node.tensor("self"), mine));
  }

  const graph::Graph& g_;
  std::map<ValueId, int> tensors_;
  std::string text_;
  std::vector<std::string> missing_;
};

Result<std::vector<Loop>> write(const rules::Pattern& pattern) {
  const auto* body = dynamic_cast<const rules::ProposedBody*>(pattern.body.get());
  if (body == nullptr) return error(fail(no_skeleton, "the pattern was not proposed"));
  TESSERA_TRY(g, graph_of(body->subgraph));
  Writer writer(g);
  writer.write();
  std::vector<Loop> out;
  for (const ValueId v : g.outputs) {
    const graph::TensorType& t = writer.type_of(v);
    Indices at;
    std::string text = split_item(t.shape, "i", at);
    const rules::TensorView to{.tensor = static_cast<int>(g.inputs.size() + out.size()),
                               .dtype = t.dtype,
                               .shape = t.shape,
                               .strides = t.strides};
    text += writer.text() + store(to, at, writer.element(v, at));
    out.push_back({.name = fmt::format("result{}", out.size()),
                   .items = t.numel(),
                   .body = indented(text),
                   .missing = writer.missing()});
  }
  return out;
}

}  // namespace

extern const Skeleton proposed;
const Skeleton proposed = {.rule = rules::proposed_rule, .write = write};

}  // namespace tessera::skeleton
