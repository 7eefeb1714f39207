// The graph as text, one line a node.
#include <fmt/format.h>

#include "base/text.h"
#include "graph/graph.h"

namespace tessera::graph {
namespace {

std::string text(const Graph& g, const Argument& a) {
  struct Printer {
    const Graph& g;
    std::string operator()(NoValue) const { return "None"; }
    std::string operator()(ValueId v) const { return "%" + g.value(v).name; }
    std::string operator()(bool b) const { return b ? "True" : "False"; }
    std::string operator()(int64_t i) const { return std::to_string(i); }
    std::string operator()(double d) const {
      std::string s = fmt::format("{}", d);
      return s.find_first_of(".enf") == std::string::npos ? s + ".0" : s;
    }
    std::string operator()(const std::string& s) const { return fmt::format("\"{}\"", s); }
    std::string operator()(DType t) const { return std::string(short_name(t)); }
    std::string operator()(const ArgumentList& list) const {
      std::vector<std::string> items;
      for (const Argument& item : list) items.push_back(text(g, item));
      return "[" + join(items, ", ") + "]";
    }
  };
  return std::visit(Printer{g}, static_cast<const Argument::variant&>(a));
}

/// Tensors by position, everything else by name; None is left out.
std::string call(const Graph& g, const Node& n) {
  std::vector<std::string> arguments;
  for (const auto& [name, a] : n.arguments) {
    if (std::holds_alternative<NoValue>(a)) continue;
    arguments.push_back(
        std::holds_alternative<ValueId>(a) ? text(g, a) : fmt::format("{}={}", name, text(g, a)));
  }
  std::string op = n.op;
  if (op.ends_with(".default")) op.resize(op.size() - 8);
  return fmt::format("{}({})", op, join(arguments, ", "));
}

std::string typed(const Graph& g, ValueId v) {
  return fmt::format("%{} : {}", g.value(v).name, to_string(g.value(v).type));
}

std::string input_line(const Graph& g, ValueId id) {
  static constexpr std::string_view names[] = {"user_input", "parameter", "buffer", "constant",
                                               "node"};
  const Value& v = g.value(id);
  std::string line =
      fmt::format("{} = {}", typed(g, id), names[static_cast<std::size_t>(v.origin)]);
  if (!v.target.empty()) line += fmt::format(" \"{}\"", v.target);
  if (!v.facts.empty()) line += " " + v.facts.dump();
  return line + "\n";
}

std::string node_line(const Graph& g, const Node& n) {
  std::vector<std::string> outputs;
  for (const ValueId v : n.outputs) outputs.push_back(typed(g, v));
  std::string line = fmt::format("{} = {}", join(outputs, ", "), call(g, n));
  std::vector<std::string> remarks;
  if (!n.module.empty()) remarks.push_back(n.module);
  if (n.prepack) remarks.emplace_back("prepack");
  if (!n.rewritten_from.empty()) remarks.push_back(fmt::format("from {}", n.rewritten_from));
  if (!remarks.empty()) line += "  # " + join(remarks, "; ");
  return line + "\n";
}

}  // namespace

std::string to_text(const Graph& g) {
  std::string out = fmt::format("graph {} ({}, {})\n", g.name, g.device, name_of(g.precision));
  for (const ValueId v : g.inputs) out += input_line(g, v);
  for (const NodeId id : g.order) out += node_line(g, g.node(id));
  std::vector<std::string> results;
  for (const ValueId v : g.outputs) results.push_back("%" + g.value(v).name);
  out += "return " + join(results, ", ") + "\n";
  for (const auto& [v, target] : g.mutations)
    out += fmt::format("update \"{}\" = %{}\n", target, g.value(v).name);
  for (const auto& [v, text] : g.assertions)
    out += fmt::format("assert %{}  \"{}\"\n", g.value(v).name, text);
  return out;
}

std::string to_text(const Graph& g, NodeId node) {
  return node_line(g, g.node(node));
}

}  // namespace tessera::graph
