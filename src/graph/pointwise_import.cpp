// How each pointwise ATen op becomes nodes of a pointwise DAG.
#include "graph/pointwise_import.h"

#include <cmath>
#include <fmt/format.h>
#include <map>
#include <optional>

namespace tessera::graph {
namespace {

inline constexpr Code unsupported_pointwise{"TS0210", "graph.unsupported_pointwise"};

using TensorIndices = std::vector<std::pair<ValueId, int>>;

/// One conversion: reads arguments of the node by name as DAG indices.
class Import {
 public:
  Import(pointwise::Dag& dag, const Graph& g, const Node& node, const TensorIndices& tensors)
      : dag_(dag), g_(g), node_(node), tensors_(tensors) {}

  /// A tensor or number argument; records a failure when it is neither.
  int arg(std::string_view name) {
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
  int arg_or(std::string_view name, double fallback) {
    return present(name) ? arg(name) : constant(fallback);
  }
  [[nodiscard]] bool present(std::string_view name) const {
    const Argument* a = node_.find(name);
    return a != nullptr && !std::holds_alternative<NoValue>(*a);
  }
  /// The argument times the number `factor` of another argument (alpha, value), which is left out
  /// when it is 1.
  int scaled(int x, std::string_view factor) {
    const auto f = node_.number(factor);
    return !f || *f == 1 ? x : call("mul", {x, constant(*f)});
  }
  int constant(double value) { return dag_.add_constant(value); }
  int call(std::string_view function, std::vector<int> arguments) {
    return error_ ? 0 : dag_.add_call(function, std::move(arguments));
  }
  int failed(std::string why) {
    if (!error_) error_ = std::move(why);
    return 0;
  }
  [[nodiscard]] const Node& node() const { return node_; }
  [[nodiscard]] DType output_type() const { return g_.value(node_.outputs.front()).type.dtype; }
  [[nodiscard]] const std::optional<std::string>& error() const { return error_; }

 private:
  pointwise::Dag& dag_;
  const Graph& g_;
  const Node& node_;
  const TensorIndices& tensors_;
  std::optional<std::string> error_;
};

using Handler = int (*)(Import&);

int identity(Import& i) {
  return i.arg(i.node().find("self") != nullptr ? "self" : "input");
}

int add(Import& i) {
  return i.call("add", {i.arg("self"), i.scaled(i.arg("other"), "alpha")});
}
int sub(Import& i) {
  return i.call("sub", {i.arg("self"), i.scaled(i.arg("other"), "alpha")});
}
int rsub(Import& i) {
  return i.call("sub", {i.arg("other"), i.scaled(i.arg("self"), "alpha")});
}

int div(Import& i) {
  const int q = i.call("div", {i.arg("self"), i.arg("other")});
  const std::string mode = i.node().text("rounding_mode");
  if (mode.empty()) return q;
  if (mode == "trunc" || mode == "floor") return i.call(mode, {q});
  return i.failed(fmt::format("rounding_mode={}", mode));
}

/// Small integer and half exponents by multiplication and roots, as PyTorch does; they keep the
/// signs of negative bases.
int pow(Import& i) {
  const int x = i.arg("self");
  if (i.node().tensor("exponent").valid() || !i.node().number("exponent"))
    return i.call("pow", {x, i.arg("exponent")});
  const double e = *i.node().number("exponent");
  if (e == 0) return i.constant(1);
  if (e == 1) return x;
  if (e == 2) return i.call("square", {x});
  if (e == 3) return i.call("cube", {x});
  if (e == 4) return i.call("square", {i.call("square", {x})});
  if (e == 0.5) return i.call("sqrt", {x});
  if (e == -0.5) return i.call("rsqrt", {x});
  if (e == -1) return i.call("reciprocal", {x});
  if (e == -2) return i.call("reciprocal", {i.call("square", {x})});
  return i.call("pow", {x, i.constant(e)});
}

int gelu(Import& i) {
  return i.call(i.node().text("approximate") == "tanh" ? "gelu_tanh" : "gelu_erf", {i.arg("self")});
}

int clamp(Import& i) {
  const int x = i.arg("self");
  const bool low = i.present("min");
  const bool high = i.present("max");
  const bool tensors = i.node().tensor("min").valid() || i.node().tensor("max").valid();
  if (low && high && !tensors) return i.call("clamp", {x, i.arg("min"), i.arg("max")});
  const int t = low ? i.call("maximum", {x, i.arg("min")}) : x;
  return high ? i.call("minimum", {t, i.arg("max")}) : t;
}

/// elu(x) = scale * (x > 0 ? x : alpha * expm1(input_scale * x))
int elu(Import& i) {
  if (i.node().number("input_scale").value_or(1) != 1) return i.failed("input_scale other than 1");
  return i.scaled(i.call("elu", {i.arg("self"), i.arg_or("alpha", 1)}), "scale");
}

/// celu(x) = max(0, x) + min(0, alpha * expm1(x / alpha))
int celu(Import& i) {
  const int x = i.arg("self");
  const int alpha = i.arg_or("alpha", 1);
  const int n = i.call("mul", {alpha, i.call("expm1", {i.call("div", {x, alpha})})});
  return i.call("where", {i.call("gt", {x, i.constant(0)}), x, n});
}

int prelu(Import& i) {
  return i.call("leaky_relu", {i.arg("self"), i.arg("weight")});
}

int softplus(Import& i) {
  return i.call("softplus", {i.arg("self"), i.arg_or("beta", 1), i.arg_or("threshold", 20)});
}

int addcmul(Import& i) {
  const int product = i.call("mul", {i.arg("tensor1"), i.arg("tensor2")});
  return i.call("add", {i.arg("self"), i.scaled(product, "value")});
}
int addcdiv(Import& i) {
  const int quotient = i.call("div", {i.arg("tensor1"), i.arg("tensor2")});
  return i.call("add", {i.arg("self"), i.scaled(quotient, "value")});
}
int lerp(Import& i) {
  const int a = i.arg("self");
  return i.call("add", {a, i.call("mul", {i.arg("weight"), i.call("sub", {i.arg("end"), a})})});
}

int masked_fill(Import& i) {
  return i.call("where", {i.arg("mask"), i.arg("value"), i.arg("self")});
}

int frac(Import& i) {
  return i.call("sub", {i.arg("self"), i.call("trunc", {i.arg("self")})});
}

int dropout(Import& i) {
  const bool active =
      i.node().flag("train").value_or(false) && i.node().number("p").value_or(0) != 0;
  return active ? i.failed("dropout draws random numbers") : identity(i);
}

/// Conversions between floating types keep the value: fused arithmetic stays in float.
int convert(Import& i) {
  const int x = i.arg("self");
  return i.output_type() == DType::boolean ? i.call("ne", {x, i.constant(0)}) : x;
}

int fill(Import& i) {
  return i.present("fill_value") ? i.arg("fill_value") : i.arg("value");
}
int zeros(Import& i) {
  return i.constant(0);
}
int ones(Import& i) {
  return i.constant(1);
}

int round_to_even(Import& i) {
  if (i.node().integer("decimals").value_or(0) != 0) return i.failed("decimals other than 0");
  return i.call("round", {i.arg("self")});
}

/// Ops of one tensor `self`, or of `self` and `other`, that are one function of the table.
const std::map<std::string_view, std::string_view> direct = {
    {"mul", "mul"},
    {"multiply", "mul"},
    {"neg", "neg"},
    {"abs", "abs"},
    {"square", "square"},
    {"reciprocal", "reciprocal"},
    {"sqrt", "sqrt"},
    {"rsqrt", "rsqrt"},
    {"fmod", "fmod"},
    {"remainder", "remainder"},
    {"atan2", "atan2"},
    {"copysign", "copysign"},
    {"logaddexp", "logaddexp"},
    {"exp", "exp"},
    {"exp2", "exp2"},
    {"expm1", "expm1"},
    {"log", "log"},
    {"log2", "log2"},
    {"log10", "log10"},
    {"log1p", "log1p"},
    {"erf", "erf"},
    {"sin", "sin"},
    {"cos", "cos"},
    {"tan", "tan"},
    {"atan", "atan"},
    {"tanh", "tanh"},
    {"sigmoid", "sigmoid"},
    {"log_sigmoid", "log_sigmoid"},
    {"silu", "silu"},
    {"relu", "relu"},
    {"relu6", "relu6"},
    {"selu", "selu"},
    {"softsign", "softsign"},
    {"mish", "mish"},
    {"hardswish", "hardswish"},
    {"hardsigmoid", "hardsigmoid"},
    {"minimum", "minimum"},
    {"maximum", "maximum"},
    {"eq", "eq"},
    {"ne", "ne"},
    {"lt", "lt"},
    {"le", "le"},
    {"gt", "gt"},
    {"ge", "ge"},
    {"logical_and", "logical_and"},
    {"logical_or", "logical_or"},
    {"logical_xor", "logical_xor"},
    {"logical_not", "logical_not"},
    {"bitwise_and", "logical_and"},
    {"bitwise_or", "logical_or"},
    {"bitwise_xor", "logical_xor"},
    {"bitwise_not", "logical_not"},
    {"isnan", "isnan"},
    {"isinf", "isinf"},
    {"floor", "floor"},
    {"ceil", "ceil"},
    {"trunc", "trunc"},
    {"sign", "sign"},
};

/// Ops whose arguments need more than that.
const std::map<std::string_view, Handler> handlers = {
    {"add", add},
    {"sub", sub},
    {"subtract", sub},
    {"rsub", rsub},
    {"div", div},
    {"true_divide", div},
    {"pow", pow},
    {"gelu", gelu},
    {"clamp", clamp},
    {"clamp_min", clamp},
    {"clamp_max", clamp},
    {"clip", clamp},
    {"hardtanh",
     [](Import& i) {
       return i.call("clamp", {i.arg("self"), i.arg_or("min_val", -1), i.arg_or("max_val", 1)});
     }},
    {"leaky_relu",
     [](Import& i) {
       return i.call("leaky_relu", {i.arg("self"), i.arg_or("negative_slope", 0.01)});
     }},
    {"elu", elu},
    {"celu", celu},
    {"prelu", prelu},
    {"_prelu_kernel", prelu},
    {"softplus", softplus},
    {"softshrink",
     [](Import& i) { return i.call("softshrink", {i.arg("self"), i.arg_or("lambd", 0.5)}); }},
    {"hardshrink",
     [](Import& i) { return i.call("hardshrink", {i.arg("self"), i.arg_or("lambd", 0.5)}); }},
    {"threshold",
     [](Import& i) {
       return i.call("threshold", {i.arg("self"), i.arg("threshold"), i.arg("value")});
     }},
    {"where",
     [](Import& i) {
       return i.call("where", {i.arg("condition"), i.arg("self"), i.arg("other")});
     }},
    {"masked_fill", masked_fill},
    {"addcmul", addcmul},
    {"addcdiv", addcdiv},
    {"lerp", lerp},
    {"frac", frac},
    {"round", round_to_even},
    {"dropout", dropout},
    {"feature_dropout", dropout},
    {"alpha_dropout", dropout},
    {"_to_copy", convert},
    {"to", convert},
    {"clone", identity},
    {"contiguous", identity},
    {"alias", identity},
    {"detach", identity},
    {"lift_fresh_copy", identity},
    {"fill", fill},
    {"full", fill},
    {"full_like", fill},
    {"zeros", zeros},
    {"zeros_like", zeros},
    {"ones", ones},
    {"ones_like", ones},
    {"scalar_tensor", [](Import& i) { return i.arg("s"); }},
};

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

/// "gelu" of "aten.gelu.default".
std::string_view short_op(std::string_view op) {
  if (op.starts_with("aten.")) op.remove_prefix(5);
  return op.substr(0, op.find('.'));
}

tl::unexpected<Diagnostic> unsupported(const Node& node, std::string_view why) {
  return error(fail(unsupported_pointwise, "`{}` ({}) is not taken as a pointwise expression: {}",
                    node.name, node.op, why));
}

}  // namespace

Result<int> append_pointwise(pointwise::Dag& dag, const Graph& g, const Node& node,
                             const TensorIndices& tensors) {
  const std::string_view op = short_op(node.op);
  const auto handler = handlers.find(op);
  const auto function = direct.find(op);
  if (handler == handlers.end() && function == direct.end())
    return unsupported(node, "no such pointwise op");
  if (node.outputs.size() != 1) return unsupported(node, "several results");
  if (const auto why = refused_type(g, node)) return unsupported(node, *why);
  Import import(dag, g, node, tensors);
  int index = 0;
  if (handler != handlers.end()) {
    index = handler->second(import);
  } else {
    std::vector<int> arguments = {import.arg("self")};
    if (pointwise::find(function->second)->arity == 2) arguments.push_back(import.arg("other"));
    index = import.call(function->second, std::move(arguments));
  }
  if (import.error()) return unsupported(node, *import.error());
  return index;
}

}  // namespace tessera::graph
