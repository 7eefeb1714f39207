#include "graph/conversion.h"

#include <algorithm>
#include <set>
#include <vector>

namespace tessera::graph {
namespace {

struct Held {
  int digits;
  int exponents;  // of the largest number
};

Held held_by(DType t) {
  switch (t) {
    case DType::float64:
      return {53, 1023};
    case DType::float32:
      return {24, 127};
    case DType::bfloat16:
      return {8, 127};
    case DType::float16:
      return {11, 15};
    case DType::float8_e4m3fn:
      return {4, 8};
    case DType::float8_e5m2:
      return {3, 15};
    default:
      return {0, 0};
  }
}

/// Whether `to` lacks numbers that `from` holds.
bool lacks(DType from, DType to) {
  const Held a = held_by(from);
  const Held b = held_by(to);
  return b.digits < a.digits || b.exponents < a.exponents;
}

bool converts(const Graph& g, const Node& n) {
  const std::string_view op = base_name(n.op);
  if ((op != "aten._to_copy" && op != "aten.to") || n.outputs.size() != 1) return false;
  const ValueId from = n.tensor("self");
  return from.valid() && is_floating(g.value(from).type.dtype) &&
         is_floating(g.value(n.outputs.front()).type.dtype);
}

/// A reader computes in a type that holds more: it converts the value, or another operand has it
/// promoted.
bool widened(const Graph& g, ValueId v) {
  const std::vector<Use> uses = g.uses(v);
  return std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
    const auto& outputs = g.node(use.node).outputs;
    return std::any_of(outputs.begin(), outputs.end(), [&](ValueId out) {
      const DType wider = g.value(out).type.dtype;
      return is_floating(wider) && lacks(wider, g.value(v).type.dtype);
    });
  });
}

/// What the module was given holds more than `to`, and so does all that was computed of it since.
bool of_wider_inputs(const Graph& g, ValueId v, DType to) {
  std::vector<ValueId> todo{v};
  std::set<ValueId> seen;
  while (!todo.empty()) {
    const ValueId at = todo.back();
    todo.pop_back();
    const DType held = g.value(at).type.dtype;
    if (!is_floating(held) || !lacks(held, to) || !seen.insert(at).second) continue;
    const NodeId from = g.value(at).producer;
    if (!from.valid()) return true;
    for (ValueId read : tensor_arguments(g.node(from))) todo.push_back(read);
  }
  return false;
}

}  // namespace

std::string_view rounding_of(const Graph& g, const Node& n) {
  if (!converts(g, n)) return "";
  const ValueId out = n.outputs.front();
  const DType from = g.value(n.tensor("self")).type.dtype;
  const DType to = g.value(out).type.dtype;
  if (!lacks(from, to)) return "";
  switch (to) {
    case DType::float8_e4m3fn:
      return "round_float8_e4m3fn";
    case DType::float8_e5m2:
      return "round_float8_e5m2";
    case DType::bfloat16:
    case DType::float16:
      if (!widened(g, out)) return "";
      if (!lacks(storage_type(g.precision), to) && !of_wider_inputs(g, n.tensor("self"), to))
        return "";
      return to == DType::bfloat16 ? "round_bfloat16" : "round_float16";
    default:
      return "";
  }
}

}  // namespace tessera::graph
