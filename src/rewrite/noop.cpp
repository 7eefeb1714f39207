// Nodes that change nothing.
#include <algorithm>
#include <cmath>
#include <set>

#include "graph/ops.h"

#include "rewrite/rewrite.h"

namespace tessera::rewrite {
namespace {

bool is_number(const Node& n, std::string_view argument, double value) {
  return !n.tensor(argument).valid() && n.number(argument) == value;
}

/// A zero that leaves every number as it is: of floating numbers -0.0 in a sum and 0.0 in a
/// difference, since -0.0 + 0.0 is 0.0.
bool neutral_zero(const Node& n, DType type) {
  if (!is_number(n, "other", 0)) return false;
  if (!is_floating(type)) return true;
  return n.number("alpha").value_or(1) == 1 &&
         std::signbit(*n.number("other")) == is_op(n, "aten.add");
}

/// Arithmetic with a neutral number, not changing type, shape or strides: of what shares elements
/// or has gaps it makes a tensor without either.
bool neutral(const Node& n, DType type) {
  const std::string_view op = base_op(n);
  if (op == "aten.add" || op == "aten.sub") return neutral_zero(n, type);
  if (op == "aten.mul") return is_number(n, "other", 1);
  if (op == "aten.div") return is_number(n, "other", 1) && n.text("rounding_mode").empty();
  if (op == "aten.pow") return is_number(n, "exponent", 1);
  return false;
}

/// Views whose result has the shape of their source have its elements too, unless they permute
/// dims.
bool reshapes_to_itself(std::string_view op) {
  static constexpr std::string_view ops[] = {
      "aten.view",      "aten.reshape", "aten._unsafe_view", "aten.expand",
      "aten.slice",     "aten.narrow",  "aten.flatten",      "aten.squeeze",
      "aten.unflatten", "aten.alias",   "aten.detach",       "aten.lift_fresh_copy"};
  return std::find(std::begin(ops), std::end(ops), op) != std::end(ops);
}

std::string_view why_noop(const Graph& g, const Node& n) {
  if (n.outputs.size() != 1) return "";
  const ValueId in = n.tensor(n.find("self") != nullptr ? "self" : "input");
  if (!in.valid()) return "";
  const TensorType& from = g.value(in).type;
  const TensorType& to = g.value(n.outputs.front()).type;
  if (from.dtype != to.dtype || from.shape != to.shape) return "";
  const std::string_view op = base_op(n);
  if (reshapes_to_itself(op)) return "a view of everything";
  if (op == "aten.dropout" && kind_of(n) == OpKind::view) return "dropout that drops nothing";
  if ((op == "aten._to_copy" || op == "aten.to") && from.strides == to.strides &&
      !graph::changes_device(g, n))
    return "a conversion to the same type";
  if ((op == "aten.clone" || op == "aten.contiguous") && from.strides == to.strides)
    return "a copy in the same layout";
  return neutral(n, to.dtype) && from.strides == to.strides ? "arithmetic with a neutral number"
                                                            : "";
}

/// transpose(transpose(x)) and t(t(x)).
ValueId undone_transpose(const Graph& g, const Node& n) {
  const Node* inner = n.outputs.size() == 1 ? producer(g, n.tensor("self")) : nullptr;
  if (inner == nullptr || base_op(*inner) != base_op(n)) return {};
  if (is_op(n, "aten.t")) return inner->tensor("self");
  if (!is_op(n, "aten.transpose")) return {};
  const std::size_t rank = g.value(n.outputs.front()).type.shape.size();
  const auto dims = [&](const Node& t) {
    return std::set{wrap_dim(*t.integer("dim0"), rank), wrap_dim(*t.integer("dim1"), rank)};
  };
  return dims(n) == dims(*inner) ? inner->tensor("self") : ValueId{};
}

/// A module's result must stay a tensor of its own where it was one.
bool would_alias_result(const Graph& g, const Node& n, ValueId source) {
  if (!g.is_output(n.outputs.front())) return false;
  return g.is_output(source) || g.value(source).origin != Origin::node;
}

/// What is known of a result's content is known of the value that stands for it. Of inputs only
/// what a guard looks at is.
void keep_facts(Graph& g, ValueId of, ValueId source) {
  if (g.value(source).origin != Origin::node) return;
  for (const auto& [name, fact] : g.value(of).facts.items()) {
    Json& known = g.value(source).facts;
    if (!known.contains(name)) known[name] = fact;
  }
}

}  // namespace

bool rewrite_noops(Graph& g, RewriteLog& log) {
  bool changed = false;
  const std::vector<NodeId> order = g.order;
  for (const NodeId id : order) {
    const Node& n = g.node(id);
    std::string_view why = why_noop(g, n);
    ValueId source = n.tensor(n.find("self") != nullptr ? "self" : "input");
    if (why.empty()) {
      source = undone_transpose(g, n);
      why = source.valid() ? "a transpose undone" : "";
    }
    if (why.empty() || would_alias_result(g, n, source)) continue;
    log.push_back({.what = std::string(why), .result = g.value(source).name, .nodes = n.covers});
    keep_facts(g, n.outputs.front(), source);
    g.replace_uses(n.outputs.front(), source);
    g.erase(id);
    changed = true;
  }
  return changed;
}

}  // namespace tessera::rewrite
