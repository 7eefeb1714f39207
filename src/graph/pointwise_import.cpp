// A pointwise ATen node becomes nodes of a pointwise DAG as its op's record says.
#include "graph/pointwise_import.h"

#include <fmt/format.h>

#include "graph/conversion.h"
#include "graph/ops.h"

namespace tessera::graph {
namespace {

inline constexpr Code unsupported_pointwise{"TS0210", "graph.unsupported_pointwise"};

/// Emitted kernels compute in float: float64 and wide integers would lose digits.
std::optional<std::string> refused_type(const Graph& g, const Node& node) {
  std::vector<ValueId> values = tensor_arguments(node);
  values.insert(values.end(), node.outputs.begin(), node.outputs.end());
  for (const ValueId v : values) {
    const DType t = g.value(v).type.dtype;
    if (t == DType::float64 || t == DType::int64 || t == DType::int32) {
      return fmt::format("`{}` is {}, which float arithmetic does not hold", g.value(v).name,
                         name_of(t));
    }
  }
  const DType out = g.value(node.outputs.front()).type.dtype;
  if (!is_floating(out) && out != DType::boolean)
    return fmt::format("integer result ({})", name_of(out));
  return std::nullopt;
}

tl::unexpected<Diagnostic> unsupported(const Node& node, std::string_view why) {
  return error(fail(unsupported_pointwise, "`{}` ({}) is not taken as a pointwise expression: {}",
                    node.name, node.op, why));
}

/// A tensor is compared with a number in the tensor's type: bfloat16(0.1) == 0.1.
std::optional<double> compared_number(const Graph& g, const Node& n) {
  const auto number = n.number("other");
  const ValueId self = n.tensor("self");
  if (!number || !self.valid() || g.value(n.outputs.front()).type.dtype != DType::boolean)
    return std::nullopt;
  const std::string rounding = fmt::format("round_{}", name_of(g.value(self).type.dtype));
  const pointwise::Function* f = pointwise::find(rounding);
  return f == nullptr ? *number : f->eval(std::span(&*number, 1));
}

/// The function of `self` and, where it has two arguments, `other`.
int call_by_name(ElementCall& call, const Graph& g, std::string_view name) {
  std::vector<int> arguments = {call.arg("self")};
  if (pointwise::find(name)->arity == 2) {
    const auto number = compared_number(g, call.node());
    arguments.push_back(number ? call.constant(*number) : call.arg("other"));
  }
  return call.call(name, std::move(arguments));
}

}  // namespace

int ElementCall::arg(std::string_view name) {
  const ValueId v = node_.tensor(name);
  if (v.valid()) {
    for (const auto& [value, index] : tensors_) {
      if (value == v) return index;
    }
    return failed(fmt::format("`{}` is not among the given operands", g_.value(v).name));
  }
  if (const auto number = node_.number(name)) return constant(*number);
  return failed(fmt::format("argument `{}` is missing", name));
}

int ElementCall::arg_or(std::string_view name, double fallback) {
  return present(name) ? arg(name) : constant(fallback);
}

bool ElementCall::present(std::string_view name) const {
  const Argument* a = node_.find(name);
  return a != nullptr && !std::holds_alternative<NoValue>(*a);
}

int ElementCall::scaled(int x, std::string_view factor) {
  const auto f = node_.number(factor);
  return !f || *f == 1 ? x : call("mul", {x, constant(*f)});
}

int ElementCall::constant(double value) {
  return dag_.add_constant(value);
}

int ElementCall::call(std::string_view function, std::vector<int> arguments) {
  return error_ ? 0 : dag_.add_call(function, std::move(arguments));
}

int ElementCall::failed(std::string why) {
  if (!error_) error_ = std::move(why);
  return 0;
}

DType ElementCall::output_type() const {
  return g_.value(node_.outputs.front()).type.dtype;
}

std::string_view ElementCall::rounding() const {
  return rounding_of(g_, node_);
}

int same_value(ElementCall& call) {
  return call.arg(call.node().find("self") != nullptr ? "self" : "input");
}

Result<int> append_pointwise(pointwise::Dag& dag, const Graph& g, const Node& node,
                             const TensorIndices& tensors) {
  const OpRecord* record = find_op(node.op);
  if (record == nullptr || record->pointwise.empty())
    return unsupported(node, "no such pointwise op");
  if (node.outputs.size() != 1) return unsupported(node, "several results");
  if (const auto why = refused_type(g, node)) return unsupported(node, *why);
  ElementCall call(dag, g, node, tensors);
  const Elements& elements = record->pointwise;
  const int index =
      elements.build != nullptr ? elements.build(call) : call_by_name(call, g, elements.function);
  if (call.error()) return unsupported(node, *call.error());
  return index;
}

}  // namespace tessera::graph
