// Arithmetic, comparison, selection and rounding, element by element: what is more than a function
// of `self` and `other`.
#include "graph/ops.h"
#include "graph/pointwise_import.h"

namespace tessera::graph::ops {
namespace {

/// x + sign * alpha * y, rounded once, as PyTorch's loops have it.
int with_multiple(ElementCall& c, std::string_view x, std::string_view y, double sign) {
  const double alpha = c.node().number("alpha").value_or(1);
  const int a = c.arg(x);
  const int b = c.arg(y);
  if (alpha == 1) return c.call(sign < 0 ? "sub" : "add", {a, b});
  return c.call("fma", {b, c.constant(sign * alpha), a});
}

int add(ElementCall& c) {
  // A sum of truth values is one, too.
  if (c.output_type() == DType::boolean)
    return c.call("logical_or", {c.arg("self"), c.scaled(c.arg("other"), "alpha")});
  return with_multiple(c, "self", "other", 1);
}

int sub(ElementCall& c) {
  return with_multiple(c, "self", "other", -1);
}

int rsub(ElementCall& c) {
  return with_multiple(c, "other", "self", -1);
}

/// A quotient as a whole number. Of 16 bits PyTorch rounds every step to them, which decides.
int whole_quotient(ElementCall& c, std::string_view mode) {
  if (size_of(c.output_type()) < 4) return c.failed("every step is rounded to 16 bits");
  const int a = c.arg("self");
  const int b = c.arg("other");
  if (mode == "floor") return c.call("div_floor", {a, b});
  if (mode == "trunc") return c.call("trunc", {c.call("div", {a, b})});
  return c.failed(fmt::format("rounding_mode={}", mode));
}

int div(ElementCall& c) {
  const std::string mode = c.node().text("rounding_mode");
  if (!mode.empty()) return whole_quotient(c, mode);
  return c.call("div", {c.arg("self"), c.arg("other")});
}

int floor_divide(ElementCall& c) {
  return whole_quotient(c, "floor");
}

/// Small integer and half exponents by multiplication and roots, as PyTorch does; they keep the
/// signs of negative bases.
int pow(ElementCall& c) {
  const int x = c.arg("self");
  if (c.node().tensor("exponent").valid() || !c.node().number("exponent"))
    return c.call("pow", {x, c.arg("exponent")});
  const double e = *c.node().number("exponent");
  if (e == 0) return c.constant(1);
  if (e == 1) return x;
  if (e == 2) return c.call("square", {x});
  if (e == 3) return c.call("cube", {x});
  if (e == 4) return c.call("square", {c.call("square", {x})});
  // A host takes the power of float16, which is another number of -0.0 and -inf.
  const bool by_power = c.output_type() == DType::float16 && !c.on_gpu();
  if (e == 0.5 && !by_power) return c.call("sqrt", {x});
  if (e == -0.5 && !by_power) return c.call("rsqrt", {x});
  if (e == -1) return c.call("reciprocal", {x});
  if (e == -2) return c.call("reciprocal", {c.call("square", {x})});
  return c.call("pow", {x, c.constant(e)});
}

/// self + value * (tensor1 op tensor2) on a GPU and self + (value * tensor1) op tensor2 elsewhere,
/// as PyTorch's kernels do, a product rounded with the sum: the one may overflow where the other
/// does not.
int addcmul(ElementCall& c) {
  const double value = c.node().number("value").value_or(1);
  const int a = c.arg("tensor1");
  const int b = c.arg("tensor2");
  const int self = c.arg("self");
  if (c.on_gpu() && value != 1)
    return c.call("fma", {c.constant(value), c.call("mul", {a, b}), self});
  return c.call("fma", {c.scaled(a, "value"), b, self});
}

int addcdiv(ElementCall& c) {
  const double value = c.node().number("value").value_or(1);
  const int a = c.arg("tensor1");
  const int b = c.arg("tensor2");
  const int self = c.arg("self");
  if (c.on_gpu() && value != 1)
    return c.call("fma", {c.constant(value), c.call("div", {a, b}), self});
  return c.call("add", {self, c.call("div", {c.scaled(a, "value"), b})});
}

/// From the nearer end, which is the result where the weight is 0 or 1.
int lerp(ElementCall& c) {
  const int a = c.arg("self");
  const int b = c.arg("end");
  const int w = c.arg("weight");
  const int d = c.call("sub", {b, a});
  const int from_a = c.call("fma", {w, d, a});
  // -d * (1 - w)
  const int from_b = c.call("fma", {d, c.call("sub", {w, c.constant(1)}), b});
  const int near = c.call("lt", {c.call("abs", {w}), c.constant(0.5)});
  return c.call("where", {near, from_a, from_b});
}

int frac(ElementCall& c) {
  return c.call("sub", {c.arg("self"), c.call("trunc", {c.arg("self")})});
}

int masked_fill(ElementCall& c) {
  return c.call("where", {c.arg("mask"), c.arg("value"), c.arg("self")});
}

int round_to_even(ElementCall& c) {
  if (c.node().integer("decimals").value_or(0) != 0) return c.failed("decimals other than 0");
  return c.call("round", {c.arg("self")});
}

int where(ElementCall& c) {
  return c.call("where", {c.arg("condition"), c.arg("self"), c.arg("other")});
}

constexpr OpRecord records[] = {
    {"aten.add", OpKind::pointwise, add},
    {"aten.sub", OpKind::pointwise, sub},
    {"aten.rsub", OpKind::pointwise, rsub},
    {"aten.div", OpKind::pointwise, div},
    {"aten.pow", OpKind::pointwise, pow},
    {"aten.floor_divide", OpKind::pointwise, floor_divide},
    {"aten.addcmul", OpKind::pointwise, addcmul},
    {"aten.addcdiv", OpKind::pointwise, addcdiv},
    {"aten.lerp", OpKind::pointwise, lerp},
    {"aten.frac", OpKind::pointwise, frac},
    {"aten.where", OpKind::pointwise, where},
    {"aten.masked_fill", OpKind::pointwise, masked_fill},
    {"aten.bitwise_and", OpKind::pointwise, "logical_and"},
    {"aten.bitwise_or", OpKind::pointwise, "logical_or"},
    {"aten.bitwise_xor", OpKind::pointwise, "logical_xor"},
    {"aten.bitwise_not", OpKind::pointwise, "logical_not"},
    {"aten.round", OpKind::pointwise, round_to_even},
    {"aten.complex", OpKind::pointwise},
    {"aten.polar", OpKind::pointwise},
};

}  // namespace

extern const OpFamily arithmetic{"arithmetic", records};

}  // namespace tessera::graph::ops
