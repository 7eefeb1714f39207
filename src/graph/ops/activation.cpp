// Activation functions, element by element, with parameters of their own.
#include <cmath>

#include "graph/ops.h"
#include "graph/pointwise_import.h"

namespace tessera::graph::ops {
namespace {

int gelu(ElementCall& c) {
  return c.call(c.node().text("approximate") == "tanh" ? "gelu_tanh" : "gelu_erf", {c.arg("self")});
}

/// elu(x) = scale * (x > 0 ? x : alpha * expm1(input_scale * x))
int elu(ElementCall& c) {
  if (c.node().number("input_scale").value_or(1) != 1) return c.failed("input_scale other than 1");
  return c.scaled(c.call("elu", {c.arg("self"), c.arg_or("alpha", 1)}), "scale");
}

/// celu(x) = max(0, x) + min(0, alpha * expm1(x / alpha))
int celu(ElementCall& c) {
  const int x = c.arg("self");
  const int alpha = c.arg_or("alpha", 1);
  const int n = c.call("mul", {alpha, c.call("expm1", {c.call("div", {x, alpha})})});
  return c.call("where", {c.call("gt", {x, c.constant(0)}), x, n});
}

int prelu(ElementCall& c) {
  return c.call("leaky_relu", {c.arg("self"), c.arg("weight")});
}

int softplus(ElementCall& c) {
  return c.call("softplus", {c.arg("self"), c.arg_or("beta", 1), c.arg_or("threshold", 20)});
}

int clamp(ElementCall& c) {
  const int x = c.arg("self");
  const bool low = c.present("min");
  const bool high = c.present("max");
  // NaN among the bounds is the result, which `clamp` does not see to.
  const auto number = [&](const char* name) {
    return !std::isnan(c.node().number(name).value_or(NAN));
  };
  if (low && high && number("min") && number("max"))
    return c.call("clamp", {x, c.arg("min"), c.arg("max")});
  // The second of equal ones: of zeros of two signs x stays, but beside a tensor.
  const auto bounded = [&](std::string_view f, int v, const char* name) {
    const int bound = c.arg(name);
    return c.node().tensor(name).valid() ? c.call(f, {v, bound}) : c.call(f, {bound, v});
  };
  const int t = low ? bounded("maximum", x, "min") : x;
  return high ? bounded("minimum", t, "max") : t;
}

int hardtanh(ElementCall& c) {
  return c.call("clamp", {c.arg("self"), c.arg_or("min_val", -1), c.arg_or("max_val", 1)});
}

int leaky_relu(ElementCall& c) {
  return c.call("leaky_relu", {c.arg("self"), c.arg_or("negative_slope", 0.01)});
}

int softshrink(ElementCall& c) {
  return c.call("softshrink", {c.arg("self"), c.arg_or("lambd", 0.5)});
}

int hardshrink(ElementCall& c) {
  return c.call("hardshrink", {c.arg("self"), c.arg_or("lambd", 0.5)});
}

int threshold(ElementCall& c) {
  return c.call("threshold", {c.arg("self"), c.arg("threshold"), c.arg("value")});
}

constexpr OpRecord records[] = {
    {"aten.gelu", OpKind::pointwise, gelu},
    {"aten.leaky_relu", OpKind::pointwise, leaky_relu},
    {"aten.elu", OpKind::pointwise, elu},
    {"aten.celu", OpKind::pointwise, celu},
    {"aten.prelu", OpKind::pointwise, prelu},
    {"aten.softplus", OpKind::pointwise, softplus},
    {"aten.softshrink", OpKind::pointwise, softshrink},
    {"aten.hardshrink", OpKind::pointwise, hardshrink},
    {"aten.threshold", OpKind::pointwise, threshold},
    {"aten.hardtanh", OpKind::pointwise, hardtanh},
    {"aten.clamp", OpKind::pointwise, clamp},
    {"aten.clamp_min", OpKind::pointwise, clamp},
    {"aten.clamp_max", OpKind::pointwise, clamp},
    {"aten.clip", OpKind::pointwise, clamp},
    {"aten._prelu_kernel", OpKind::pointwise, prelu},
    {"aten.glu", OpKind::pointwise},
};

}  // namespace

extern const OpFamily activation{"activation", records};

}  // namespace tessera::graph::ops
