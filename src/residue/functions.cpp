#include "residue/functions.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "residue/field.h"

namespace tessera::residue {
namespace {

using Args = std::span<const Value>;
using Law = Value (*)(Args);

constexpr double log2_e = 1.4426950408889634;

Value minus(const Value& a, const Value& b) {
  return add(a, negative(b));
}
Value truth(bool b) {
  return number(b ? 1 : 0);
}
bool is_true(const Value& v) {
  return !(v.is_number() && v.number == 0);
}
bool below(const Value& a, const Value& b) {
  return rank(a) < rank(b);
}
Value exponential(const Value& x) {
  return power(multiply(x, constant(log2_e)));
}
Value sigmoid(const Value& x) {
  return divide(number(1), add(number(1), exponential(negative(x))));
}
/// 1 - 2 / (1 + e^2x).
Value tanh(const Value& x) {
  const Value square = exponential(add(x, x));
  return minus(number(1), divide(number(2), add(number(1), square)));
}
Value clamped(const Value& x, const Value& low, const Value& high) {
  return least(greatest(x, low), high);
}
Value cube(const Value& x) {
  return multiply(multiply(x, x), x);
}
Value gelu_tanh(const Value& x) {
  const Value inner =
      multiply(constant(std::sqrt(2 / M_PI)), add(x, multiply(constant(0.044715), cube(x))));
  return multiply(multiply(constant(0.5), x), add(number(1), tanh(inner)));
}
/// The whole exponents that are small; nothing of others, whose law is not known.
std::optional<Value> whole_power(const Value& x, const Value& exponent) {
  if (!exponent.is_number() || std::floor(exponent.number) != exponent.number ||
      std::fabs(exponent.number) > 64)
    return std::nullopt;
  Value out = number(1);
  for (int i = 0; i < std::abs(static_cast<int>(exponent.number)); ++i) out = multiply(out, x);
  return exponent.number < 0 ? divide(number(1), out) : out;
}

const std::map<std::string_view, Law>& laws() {
  static const std::map<std::string_view, Law> table = {
      {"add", [](Args a) { return add(a[0], a[1]); }},
      {"sub", [](Args a) { return minus(a[0], a[1]); }},
      {"mul", [](Args a) { return multiply(a[0], a[1]); }},
      {"div", [](Args a) { return divide(a[0], a[1]); }},
      {"fma", [](Args a) { return add(multiply(a[0], a[1]), a[2]); }},
      {"neg", [](Args a) { return negative(a[0]); }},
      {"abs", [](Args a) { return below(a[0], number(0)) ? negative(a[0]) : a[0]; }},
      {"square", [](Args a) { return multiply(a[0], a[0]); }},
      {"cube", [](Args a) { return cube(a[0]); }},
      {"reciprocal", [](Args a) { return divide(number(1), a[0]); }},
      {"exp", [](Args a) { return exponential(a[0]); }},
      {"exp2", [](Args a) { return power(a[0]); }},
      {"exp2_flushed", [](Args a) { return power(a[0]); }},
      {"expm1", [](Args a) { return minus(exponential(a[0]), number(1)); }},
      {"round_tf32", [](Args a) { return a[0]; }},
      {"round_tf32_finite", [](Args a) { return a[0]; }},
      {"tanh", [](Args a) { return tanh(a[0]); }},
      {"tanh_approx", [](Args a) { return tanh(a[0]); }},
      {"sigmoid", [](Args a) { return sigmoid(a[0]); }},
      {"silu", [](Args a) { return multiply(a[0], sigmoid(a[0])); }},
      {"gelu_tanh", [](Args a) { return gelu_tanh(a[0]); }},
      {"relu", [](Args a) { return below(a[0], number(0)) ? number(0) : a[0]; }},
      {"relu6", [](Args a) { return clamped(a[0], number(0), number(6)); }},
      {"clamp", [](Args a) { return clamped(a[0], a[1], a[2]); }},
      {"leaky_relu", [](Args a) { return below(number(0), a[0]) ? a[0] : multiply(a[0], a[1]); }},
      {"hardsigmoid",
       [](Args a) {
         return divide(clamped(add(a[0], number(3)), number(0), number(6)), number(6));
       }},
      {"hardswish",
       [](Args a) {
         const Value gate = clamped(add(a[0], number(3)), number(0), number(6));
         return divide(multiply(a[0], gate), number(6));
       }},
      {"minimum", [](Args a) { return least(a[0], a[1]); }},
      {"maximum", [](Args a) { return greatest(a[0], a[1]); }},
      {"where", [](Args a) { return is_true(a[0]) ? a[1] : a[2]; }},
      {"eq", [](Args a) { return truth(same(a[0], a[1])); }},
      {"ne", [](Args a) { return truth(!same(a[0], a[1])); }},
      {"lt", [](Args a) { return truth(below(a[0], a[1])); }},
      {"le", [](Args a) { return truth(!below(a[1], a[0])); }},
      {"gt", [](Args a) { return truth(below(a[1], a[0])); }},
      {"ge", [](Args a) { return truth(!below(a[0], a[1])); }},
      {"logical_and", [](Args a) { return truth(is_true(a[0]) && is_true(a[1])); }},
      {"logical_or", [](Args a) { return truth(is_true(a[0]) || is_true(a[1])); }},
      {"logical_xor", [](Args a) { return truth(is_true(a[0]) != is_true(a[1])); }},
      {"logical_not", [](Args a) { return truth(!is_true(a[0])); }},
      {"isinf", [](Args a) { return truth(!has_pair(a[0])); }},
  };
  return table;
}

/// Two draws of what the name and the arguments say.
Value unknown(std::string_view name, Args arguments) {
  uint64_t draw = 1;
  for (const char c : name) draw = mixed(draw ^ static_cast<unsigned char>(c));
  for (const Value& v : arguments) {
    if (!has_pair(v)) {
      draw = mixed(draw ^ (v.number > 0 ? 3 : 5));
      continue;
    }
    draw = mixed(draw ^ uint64_t{pair_of(v).mod_p} << 8);
  }
  return residues(draw % p, mixed(draw) % q);
}

}  // namespace

Value constant(double n) {
  return number(static_cast<float>(n));
}

double rank(const Value& v) {
  if (v.is_number()) return v.number;
  constexpr double widest = 8;
  const uint64_t draw = mixed(~uint64_t{v.mod_p});
  return std::ldexp(static_cast<double>(draw >> 11), -52) * widest - widest;
}

Value least(const Value& a, const Value& b) {
  if (a.is_nothing() || b.is_nothing()) return nothing();
  return below(b, a) ? b : a;
}

Value greatest(const Value& a, const Value& b) {
  if (a.is_nothing() || b.is_nothing()) return nothing();
  return below(a, b) ? b : a;
}

Value result_of(const pointwise::Function& f, Args arguments) {
  const auto is_nothing = [](const Value& v) { return v.is_nothing(); };
  if (f.name == "where" && !arguments[0].is_nothing())
    return is_true(arguments[0]) ? arguments[1] : arguments[2];
  if (f.name == "isnan") return truth(arguments[0].is_nothing());
  if (std::any_of(arguments.begin(), arguments.end(), is_nothing)) return nothing();
  const auto law = laws().find(f.name);
  if (law != laws().end()) return law->second(arguments);
  if (f.name == "pow")
    if (const std::optional<Value> v = whole_power(arguments[0], arguments[1])) return *v;
  return unknown(f.name, arguments);
}

std::vector<Value> evaluate(const pointwise::Dag& dag, std::span<const Value> operands) {
  using Kind = pointwise::Dag::Node::Kind;
  std::vector<Value> values, arguments;
  values.reserve(dag.nodes.size());
  for (const pointwise::Dag::Node& n : dag.nodes) {
    if (n.kind == Kind::operand) {
      values.push_back(operands[static_cast<std::size_t>(n.operand)]);
    } else if (n.kind == Kind::constant) {
      values.push_back(constant(n.constant));
    } else {
      arguments.clear();
      for (const int a : n.arguments) arguments.push_back(values[static_cast<std::size_t>(a)]);
      values.push_back(result_of(*n.function, arguments));
    }
  }
  std::vector<Value> out;
  for (const int r : dag.results) out.push_back(values[static_cast<std::size_t>(r)]);
  return out;
}

}  // namespace tessera::residue
