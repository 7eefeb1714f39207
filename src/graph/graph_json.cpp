// Graph to JSON and back (schema tessera.graph/1, docs/protocol.md).
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <unordered_map>

#include "graph/argument_json.h"
#include "graph/graph.h"

namespace tessera::graph {
namespace {

inline constexpr Code bad_graph{"TS0201", "graph.malformed"};

constexpr std::string_view origin_names[] = {"user_input", "parameter", "buffer", "constant",
                                             "node"};

tl::unexpected<Diagnostic> malformed(std::string_view what) {
  return error(fail(bad_graph, "the graph JSON is malformed: {}", what)
                   .expect("schema tessera.graph/1")
                   .help("trace the module again with the tracer of this version"));
}

using Names = std::unordered_map<std::string, ValueId>;

Result<Argument> read_argument(const Json& j, const Names& names) {
  if (j.is_null()) return Argument(NoValue{});
  if (j.is_boolean()) return Argument(j.get<bool>());
  if (j.is_number_integer()) return Argument(j.get<int64_t>());
  if (j.is_number_float()) return Argument(j.get<double>());
  if (j.is_string()) return Argument(j.get<std::string>());
  if (j.is_array()) {
    ArgumentList list;
    for (const Json& item : j) {
      TESSERA_TRY(a, read_argument(item, names));
      list.push_back(std::move(a));
    }
    return Argument(std::move(list));
  }
  if (j.contains("value")) {
    const auto it = names.find(j.at("value").get<std::string>());
    if (it == names.end())
      return malformed(fmt::format("no value `{}`", j.at("value").get<std::string>()));
    return Argument(it->second);
  }
  if (j.contains("dtype")) {
    TESSERA_TRY(type, parse_dtype(j.at("dtype").get<std::string>()));
    return Argument(type);
  }
  if (j.contains("float")) {
    const std::string text = j.at("float").get<std::string>();
    constexpr double inf = std::numeric_limits<double>::infinity();
    return Argument(text == "inf" ? inf : text == "-inf" ? -inf : std::nan(""));
  }
  return malformed(fmt::format("argument {}", j.dump()));
}

Json write_argument(const Graph& g, const Argument& a) {
  struct Writer {
    const Graph& g;
    Json operator()(NoValue) const { return nullptr; }
    Json operator()(ValueId v) const { return {{"value", g.value(v).name}}; }
    Json operator()(bool b) const { return b; }
    Json operator()(int64_t i) const { return i; }
    Json operator()(double d) const {
      if (std::isfinite(d)) return d;
      return {{"float", std::isnan(d) ? "nan" : d > 0 ? "inf" : "-inf"}};
    }
    Json operator()(const std::string& s) const { return s; }
    Json operator()(DType t) const { return {{"dtype", name_of(t)}}; }
    Json operator()(const ArgumentList& list) const {
      Json out = Json::array();
      for (const Argument& item : list) out.push_back(write_argument(g, item));
      return out;
    }
  };
  return std::visit(Writer{g}, static_cast<const Argument::variant&>(a));
}

Result<Value> read_value(const Json& j) {
  Value v;
  v.name = j.at("name").get<std::string>();
  TESSERA_TRY(dtype, parse_dtype(j.at("dtype").get<std::string>()));
  v.type = {dtype, j.at("shape").get<std::vector<int64_t>>(),
            j.at("strides").get<std::vector<int64_t>>()};
  if (v.type.shape.size() != v.type.strides.size())
    return malformed(fmt::format("shape and strides of `{}`", v.name));
  const std::string origin = j.value("origin", "node");
  bool known = false;
  for (std::size_t i = 0; i < std::size(origin_names); ++i) {
    if (origin != origin_names[i]) continue;
    v.origin = static_cast<Origin>(i);
    known = true;
  }
  if (!known) return malformed(fmt::format("origin `{}` of `{}`", origin, v.name));
  v.target = j.value("target", "");
  v.device = j.value("device", "");
  v.literal = j.value("literal", false);
  if (j.contains("facts")) v.facts = j.at("facts");
  return v;
}

Result<Node> read_node(const Json& j, const Names& names) {
  Node n;
  n.name = j.at("name").get<std::string>();
  n.op = j.at("op").get<std::string>();
  for (const auto& [key, value] : j.at("arguments").items()) {
    TESSERA_TRY(a, read_argument(value, names));
    n.arguments.emplace_back(key, std::move(a));
  }
  for (const Json& output : j.at("outputs")) {
    const auto it = names.find(output.get<std::string>());
    if (it == names.end())
      return malformed(fmt::format("no value `{}`", output.get<std::string>()));
    n.outputs.push_back(it->second);
  }
  n.module = j.value("module", "");
  n.place = j.value("place", "");
  n.prepack = j.value("prepack", false);
  if (j.contains("covers")) n.covers = j.at("covers").get<std::vector<std::string>>();
  n.rewritten_from = j.value("rewritten_from", "");
  return n;
}

Result<Graph> read_graph(const Json& j) {
  Graph g;
  if (j.value("schema", "") != "tessera.graph/1")
    return malformed(fmt::format("schema `{}`", j.value("schema", "")));
  g.name = j.value("name", "");
  g.device = j.value("device", "cpu");
  TESSERA_TRY(precision, parse_precision(j.value("precision", "fp32")));
  g.precision = precision;
  if (j.contains("meta")) g.meta = j.at("meta");
  Names names;
  for (const Json& item : j.at("values")) {
    TESSERA_TRY(value, read_value(item));
    const std::string name = value.name;
    if (!names.emplace(name, g.add_value(std::move(value))).second)
      return malformed(fmt::format("two values `{}`", name));
  }
  const auto lookup = [&](const Json& name) -> Result<ValueId> {
    const auto it = names.find(name.get<std::string>());
    if (it == names.end()) return malformed(fmt::format("no value `{}`", name.get<std::string>()));
    return it->second;
  };
  for (const Json& item : j.at("inputs")) {
    TESSERA_TRY(v, lookup(item));
    g.inputs.push_back(v);
  }
  for (const Json& item : j.at("nodes")) {
    TESSERA_TRY(node, read_node(item, names));
    g.add_node(std::move(node));
  }
  for (const Json& item : j.at("outputs")) {
    TESSERA_TRY(v, lookup(item));
    g.outputs.push_back(v);
  }
  for (const Json& item : j.value("mutations", Json::array())) {
    TESSERA_TRY(v, lookup(item.at("value")));
    g.mutations.emplace_back(v, item.at("target").get<std::string>());
  }
  for (const Json& item : j.value("assertions", Json::array())) {
    TESSERA_TRY(v, lookup(item.at("value")));
    g.assertions.emplace_back(v, item.at("message").get<std::string>());
  }
  return g;
}

Json write_value(const Value& v) {
  Json j = {{"name", v.name},
            {"dtype", name_of(v.type.dtype)},
            {"shape", v.type.shape},
            {"strides", v.type.strides},
            {"origin", origin_names[static_cast<std::size_t>(v.origin)]}};
  if (!v.target.empty()) j["target"] = v.target;
  if (!v.device.empty()) j["device"] = v.device;
  if (v.literal) j["literal"] = true;
  if (!v.facts.empty()) j["facts"] = v.facts;
  return j;
}

Json write_node(const Graph& g, const Node& n) {
  Json arguments = Json::object();
  for (const auto& [name, a] : n.arguments) arguments[name] = write_argument(g, a);
  Json outputs = Json::array();
  for (const ValueId v : n.outputs) outputs.push_back(g.value(v).name);
  Json j = {{"name", n.name}, {"op", n.op}, {"arguments", arguments}, {"outputs", outputs}};
  if (!n.module.empty()) j["module"] = n.module;
  if (!n.place.empty()) j["place"] = n.place;
  if (n.prepack) j["prepack"] = true;
  if (n.covers != std::vector<std::string>{n.name}) j["covers"] = n.covers;
  if (!n.rewritten_from.empty()) j["rewritten_from"] = n.rewritten_from;
  return j;
}

}  // namespace

Result<Graph> import_graph(const Json& j) {
  try {
    return read_graph(j);
  } catch (const Json::exception& e) {
    return malformed(e.what());
  }
}

Json to_json(const Graph& g, const Argument& a) {
  return write_argument(g, a);
}

Json to_json(const Graph& g) {
  Json values = Json::array();
  Json inputs = Json::array();
  for (const ValueId v : g.inputs) {
    inputs.push_back(g.value(v).name);
    values.push_back(write_value(g.value(v)));
  }
  Json nodes = Json::array();
  for (const NodeId id : g.order) {
    nodes.push_back(write_node(g, g.node(id)));
    for (const ValueId v : g.node(id).outputs) values.push_back(write_value(g.value(v)));
  }
  Json outputs = Json::array();
  for (const ValueId v : g.outputs) outputs.push_back(g.value(v).name);
  Json mutations = Json::array();
  for (const auto& [v, target] : g.mutations)
    mutations.push_back({{"value", g.value(v).name}, {"target", target}});
  Json assertions = Json::array();
  for (const auto& [v, message] : g.assertions)
    assertions.push_back({{"value", g.value(v).name}, {"message", message}});
  return {{"schema", "tessera.graph/1"},
          {"name", g.name},
          {"device", g.device},
          {"precision", name_of(g.precision)},
          {"meta", g.meta},
          {"inputs", inputs},
          {"outputs", outputs},
          {"mutations", mutations},
          {"assertions", assertions},
          {"values", values},
          {"nodes", nodes}};
}

}  // namespace tessera::graph
