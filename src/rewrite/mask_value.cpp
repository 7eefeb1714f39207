// Single elements of masks: what a value holds at an index, from creation ops, facts, views and
// pointwise ops.
#include <cmath>
#include <limits>

#include "graph/operand.h"
#include "graph/ops.h"
#include "graph/pointwise_import.h"

#include "rewrite/rewrite.h"

namespace tessera::rewrite {
namespace {

constexpr int deepest = 32;
using Index = std::vector<int64_t>;

std::optional<double> walk(const Graph& g, ValueId v, const Index& index, int depth);

double fact_number(const Json& j) {
  if (j.is_number()) return j.get<double>();
  if (j.is_boolean()) return j.get<bool>() ? 1 : 0;
  const std::string text = j.get<std::string>();
  constexpr double inf = std::numeric_limits<double>::infinity();
  return text == "-inf" ? -inf : text == "inf" ? inf : std::nan("");
}

std::optional<double> from_facts(const Value& v, const Index& index) {
  if (v.facts.contains("scalar")) return fact_number(v.facts.at("scalar"));
  if (index.size() < 2) return std::nullopt;
  const int64_t distance = index[index.size() - 1] - index[index.size() - 2];
  if (v.facts.contains("upper")) {
    const bool inside = v.facts.at("lower").get<int64_t>() <= distance &&
                        distance <= v.facts.at("upper").get<int64_t>();
    if (v.facts.contains("additive_band")) return inside ? 0 : fact_number(v.facts.at("masked"));
    return inside == v.facts.contains("band") ? 1 : 0;
  }
  if (!v.facts.contains("diagonal")) return std::nullopt;
  const int64_t diagonal = v.facts.at("diagonal").get<int64_t>();
  if (v.facts.contains("lower_triangular")) return distance <= diagonal ? 1 : 0;
  if (v.facts.contains("upper_triangular")) return distance >= diagonal ? 1 : 0;
  if (v.facts.contains("additive_lower_triangular"))
    return distance <= diagonal ? 0 : fact_number(v.facts.at("masked"));
  return std::nullopt;
}

std::optional<double> created(const Node& n, const Index& index) {
  const std::string_view op = base_op(n);
  if (op == "aten.zeros" || op == "aten.zeros_like" || op == "aten.new_zeros") return 0;
  if (op == "aten.ones" || op == "aten.ones_like" || op == "aten.new_ones") return 1;
  if (op == "aten.full" || op == "aten.full_like" || op == "aten.new_full")
    return n.number("fill_value");
  if (op == "aten.scalar_tensor") return n.number("s");
  if (op == "aten.eye") return index.size() == 2 && index[0] == index[1] ? 1 : 0;
  if (op == "aten.arange") {
    return n.number("start").value_or(0) +
           static_cast<double>(index.at(0)) * n.number("step").value_or(1);
  }
  return std::nullopt;
}

/// The index of an argument that is broadcast to the result's shape.
Index broadcast(const Index& index, const std::vector<int64_t>& shape) {
  Index out(shape.size());
  for (std::size_t i = 0; i < shape.size(); ++i) {
    out[i] = shape[i] == 1 ? 0 : index[index.size() - shape.size() + i];
  }
  return out;
}

std::optional<double> computed(const Graph& g, const Node& n, const Index& index, int depth) {
  std::vector<double> operands;
  pointwise::Dag dag;
  std::vector<std::pair<ValueId, int>> arguments;
  for (const ValueId v : tensor_arguments(n)) {
    const auto value = walk(g, v, broadcast(index, g.value(v).type.shape), depth);
    if (!value) return std::nullopt;
    arguments.emplace_back(v, dag.add_operand(static_cast<int>(operands.size())));
    operands.push_back(*value);
  }
  // Positions are integers that doubles hold exactly: the refusal of wide integers is for emitted
  // code.
  const auto compare = [&](auto&& f) -> std::optional<double> {
    const auto other = operands.size() > 1 ? std::optional(operands[1]) : n.number("other");
    return other ? std::optional<double>(f(operands.at(0), *other)) : std::nullopt;
  };
  const std::string_view op = base_op(n);
  if (op == "aten.le") return compare([](double a, double b) { return a <= b; });
  if (op == "aten.lt") return compare([](double a, double b) { return a < b; });
  if (op == "aten.ge") return compare([](double a, double b) { return a >= b; });
  if (op == "aten.gt") return compare([](double a, double b) { return a > b; });
  if (op == "aten.eq") return compare([](double a, double b) { return a == b; });
  if (op == "aten.ne") return compare([](double a, double b) { return a != b; });
  if (op == "aten.add")
    return compare([&](double a, double b) { return a + b * n.number("alpha").value_or(1); });
  if (op == "aten.sub")
    return compare([&](double a, double b) { return a - b * n.number("alpha").value_or(1); });
  if (op == "aten._to_copy" || op == "aten.to") {
    return g.value(n.outputs.front()).type.dtype == DType::boolean ? (operands.at(0) != 0 ? 1 : 0)
                                                                   : operands.at(0);
  }
  const auto result = append_pointwise(dag, g, n, arguments);
  if (!result) return std::nullopt;
  dag.results = {*result};
  return dag.eval(operands)[0];
}

/// The index into the base of a view's element. A view over a contiguous base names one element by
/// its offset.
std::optional<double> through_view(const Graph& g, ValueId v, const Index& index, int depth) {
  const Operand o = resolve(g, v);
  if (o.base == v) return std::nullopt;
  int64_t offset = o.offset;
  for (std::size_t i = 0; i < index.size(); ++i) offset += index[i] * o.strides[i];
  const TensorType& base = g.value(o.base).type;
  if (!base.contiguous()) return std::nullopt;
  Index at(base.shape.size());
  for (std::size_t i = base.shape.size(); i-- > 0;) {
    at[i] = offset % base.shape[i];
    offset /= base.shape[i];
  }
  return walk(g, o.base, at, depth);
}

std::optional<double> from_producer(const Graph& g, ValueId v, const Index& index, int depth) {
  const Node* n = producer(g, v);
  if (n == nullptr) return std::nullopt;
  if (const auto number = created(*n, index)) return number;
  if (is_op(*n, "aten.tril") || is_op(*n, "aten.triu")) {
    const int64_t distance = index[index.size() - 1] - index[index.size() - 2];
    const int64_t diagonal = n->integer("diagonal").value_or(0);
    const bool kept = is_op(*n, "aten.tril") ? distance <= diagonal : distance >= diagonal;
    return kept ? walk(g, n->tensor("self"), index, depth + 1) : std::optional<double>(0);
  }
  if (const auto element = through_view(g, v, index, depth + 1)) return element;
  const OpKind kind = kind_of(*n);
  const bool converts =
      is_op(*n, "aten._to_copy") || is_op(*n, "aten.to") || is_op(*n, "aten.clone");
  if (n->outputs.size() != 1 || (kind != OpKind::pointwise && !converts)) return std::nullopt;
  return computed(g, *n, index, depth + 1);
}

/// A single number is computed again where it can be: its fact is rounded to its type.
std::optional<double> walk(const Graph& g, ValueId v, const Index& index, int depth) {
  if (depth > deepest) return std::nullopt;
  const Value& value = g.value(v);
  const auto fact = from_facts(value, index);
  if (fact && value.type.numel() > 1) return fact;
  const auto number = from_producer(g, v, index, depth);
  return number ? number : fact;
}

}  // namespace

std::optional<double> element(const Graph& g, ValueId v, const std::vector<int64_t>& index) {
  return walk(g, v, index, 0);
}

}  // namespace tessera::rewrite
