// The table of pointwise functions. Values follow PyTorch, also for infinities and NaN.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "pointwise/pointwise.h"

namespace tessera::pointwise {
namespace {

using Args = std::span<const double>;
constexpr double inf = std::numeric_limits<double>::infinity();

double sigmoid(double x) {
  return 1.0 / (1.0 + std::exp(-x));
}
double softplus(double x) {
  return x > 20 ? x : std::log1p(std::exp(x));
}
bool either_nan(Args a) {
  return std::isnan(a[0]) || std::isnan(a[1]);
}
double clamp(double x, double low, double high) {
  return std::isnan(x) ? x : std::min(std::max(x, low), high);
}
double sign(double x) {
  return static_cast<double>(x > 0) - static_cast<double>(x < 0);
}
/// Python's modulo: the result has the sign of the divisor.
double remainder(double a, double b) {
  const double m = std::fmod(a, b);
  return m != 0 && ((m < 0) != (b < 0)) ? m + b : m;
}
double gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double round_tf32(Args a) {
  auto f = static_cast<float>(a[0]);
  if (!std::isfinite(f)) return f;
  uint32_t b = 0;
  std::memcpy(&b, &f, 4);
  b = (b + 0x1000U) & ~0x1fffU;
  std::memcpy(&f, &b, 4);
  return f;
}
double logaddexp(Args a) {
  if (std::isinf(a[0]) && a[0] == a[1]) return a[0];
  return std::max(a[0], a[1]) + std::log1p(std::exp(-std::fabs(a[0] - a[1])));
}

constexpr double selu_alpha = 1.6732632423543772848170429916717;
constexpr double selu_scale = 1.0507009873554804934193349852946;

const std::array table = {
    // Arithmetic.
    Function{"add", 2, [](Args a) { return a[0] + a[1]; }, "({0} + {1})"},
    Function{"sub", 2, [](Args a) { return a[0] - a[1]; }, "({0} - {1})"},
    Function{"mul", 2, [](Args a) { return a[0] * a[1]; }, "({0} * {1})"},
    Function{"div", 2, [](Args a) { return a[0] / a[1]; }, "({0} / {1})"},
    Function{"neg", 1, [](Args a) { return -a[0]; }, "(-{0})"},
    Function{"abs", 1, [](Args a) { return std::fabs(a[0]); }, "tsr_abs({0})"},
    Function{"square", 1, [](Args a) { return a[0] * a[0]; }, "tsr_square({0})"},
    Function{"cube", 1, [](Args a) { return a[0] * a[0] * a[0]; }, "tsr_cube({0})"},
    Function{"reciprocal", 1, [](Args a) { return 1 / a[0]; }, "(1.0f / {0})"},
    Function{"sqrt", 1, [](Args a) { return std::sqrt(a[0]); }, "tsr_sqrt({0})"},
    Function{"rsqrt", 1, [](Args a) { return 1 / std::sqrt(a[0]); }, "tsr_rsqrt({0})"},
    Function{"pow", 2, [](Args a) { return std::pow(a[0], a[1]); }, "tsr_pow({0}, {1})"},
    Function{"fmod", 2, [](Args a) { return std::fmod(a[0], a[1]); }, "tsr_fmod({0}, {1})"},
    Function{"remainder", 2, [](Args a) { return remainder(a[0], a[1]); },
             "tsr_remainder({0}, {1})"},
    Function{"atan2", 2, [](Args a) { return std::atan2(a[0], a[1]); }, "tsr_atan2({0}, {1})"},
    Function{"copysign", 2, [](Args a) { return std::copysign(a[0], a[1]); },
             "tsr_copysign({0}, {1})"},
    Function{"logaddexp", 2, logaddexp, "tsr_logaddexp({0}, {1})"},
    // Exponentials and logarithms.
    Function{"exp", 1, [](Args a) { return std::exp(a[0]); }, "tsr_exp({0})"},
    Function{"exp2", 1, [](Args a) { return std::exp2(a[0]); }, "tsr_exp2({0})"},
    // To 10 bits after the leading one, ties away from zero: an operand of a tf32 product.
    Function{"round_tf32", 1, round_tf32, "tsr_round_tf32({0})"},
    // Results below 2^-126 are 0, and on a GPU it is one instruction: for softmax.
    Function{"exp2_flushed", 1,
             [](Args a) {
               const double y = std::exp2(a[0]);
               return y < 0x1p-126 ? 0.0 : y;
             },
             "tsr_exp2_flushed({0})"},
    Function{"expm1", 1, [](Args a) { return std::expm1(a[0]); }, "tsr_expm1({0})"},
    Function{"log", 1, [](Args a) { return std::log(a[0]); }, "tsr_log({0})"},
    Function{"log2", 1, [](Args a) { return std::log2(a[0]); }, "tsr_log2({0})"},
    Function{"log10", 1, [](Args a) { return std::log10(a[0]); }, "tsr_log10({0})"},
    Function{"log1p", 1, [](Args a) { return std::log1p(a[0]); }, "tsr_log1p({0})"},
    Function{"erf", 1, [](Args a) { return std::erf(a[0]); }, "tsr_erf({0})"},
    Function{"sin", 1, [](Args a) { return std::sin(a[0]); }, "tsr_sin({0})"},
    Function{"cos", 1, [](Args a) { return std::cos(a[0]); }, "tsr_cos({0})"},
    Function{"tan", 1, [](Args a) { return std::tan(a[0]); }, "tsr_tan({0})"},
    Function{"atan", 1, [](Args a) { return std::atan(a[0]); }, "tsr_atan({0})"},
    // Activations.
    Function{"tanh", 1, [](Args a) { return std::tanh(a[0]); }, "tsr_tanh({0})"},
    Function{"sigmoid", 1, [](Args a) { return sigmoid(a[0]); }, "tsr_sigmoid({0})"},
    Function{"log_sigmoid", 1,
             [](Args a) { return std::fmin(a[0], 0) - std::log1p(std::exp(-std::fabs(a[0]))); },
             "tsr_log_sigmoid({0})"},
    Function{"silu", 1, [](Args a) { return a[0] / (1 + std::exp(-a[0])); }, "tsr_silu({0})"},
    Function{"gelu_erf", 1, [](Args a) { return 0.5 * a[0] * (1 + std::erf(a[0] * M_SQRT1_2)); },
             "tsr_gelu_erf({0})"},
    Function{"gelu_tanh", 1, [](Args a) { return gelu_tanh(a[0]); }, "tsr_gelu_tanh({0})"},
    Function{"relu", 1, [](Args a) { return a[0] < 0 ? 0 : a[0]; }, "tsr_relu({0})"},
    Function{"relu6", 1, [](Args a) { return clamp(a[0], 0, 6); }, "tsr_clamp({0}, 0.0f, 6.0f)"},
    Function{"leaky_relu", 2, [](Args a) { return a[0] > 0 ? a[0] : a[0] * a[1]; },
             "tsr_leaky_relu({0}, {1})"},
    Function{"elu", 2, [](Args a) { return a[0] > 0 ? a[0] : a[1] * std::expm1(a[0]); },
             "tsr_elu({0}, {1})"},
    Function{"selu", 1,
             [](Args a) { return selu_scale * (a[0] > 0 ? a[0] : selu_alpha * std::expm1(a[0])); },
             "tsr_selu({0})"},
    Function{
        "softplus", 3,
        [](Args a) { return a[0] * a[1] > a[2] ? a[0] : std::log1p(std::exp(a[0] * a[1])) / a[1]; },
        "tsr_softplus({0}, {1}, {2})"},
    Function{"softsign", 1, [](Args a) { return a[0] / (1 + std::fabs(a[0])); },
             "tsr_softsign({0})"},
    Function{"mish", 1, [](Args a) { return a[0] * std::tanh(softplus(a[0])); }, "tsr_mish({0})"},
    Function{"hardswish", 1, [](Args a) { return a[0] * clamp(a[0] + 3, 0, 6) / 6; },
             "tsr_hardswish({0})"},
    Function{"hardsigmoid", 1, [](Args a) { return clamp(a[0] + 3, 0, 6) / 6; },
             "tsr_hardsigmoid({0})"},
    Function{
        "softshrink", 2,
        [](Args a) { return a[0] > a[1]    ? a[0] - a[1]
                            : a[0] < -a[1] ? a[0] + a[1]
                                           : a[0] * 0; },
        "tsr_softshrink({0}, {1})"},
    Function{"hardshrink", 2, [](Args a) { return a[0] >= -a[1] && a[0] <= a[1] ? 0 : a[0]; },
             "tsr_hardshrink({0}, {1})"},
    Function{"threshold", 3, [](Args a) { return a[0] <= a[1] ? a[2] : a[0]; },
             "tsr_threshold({0}, {1}, {2})"},
    Function{"clamp", 3, [](Args a) { return clamp(a[0], a[1], a[2]); },
             "tsr_clamp({0}, {1}, {2})"},
    // Selection; truth values are 1 and 0.
    Function{"minimum", 2, [](Args a) { return either_nan(a) ? NAN : std::min(a[0], a[1]); },
             "tsr_minimum({0}, {1})"},
    Function{"maximum", 2, [](Args a) { return either_nan(a) ? NAN : std::max(a[0], a[1]); },
             "tsr_maximum({0}, {1})"},
    Function{"where", 3, [](Args a) { return a[0] != 0 ? a[1] : a[2]; },
             "({0} != 0.0f ? {1} : {2})"},
    Function{"eq", 2, [](Args a) { return a[0] == a[1] ? 1.0 : 0.0; },
             "({0} == {1} ? 1.0f : 0.0f)"},
    Function{"ne", 2, [](Args a) { return a[0] != a[1] ? 1.0 : 0.0; },
             "({0} != {1} ? 1.0f : 0.0f)"},
    Function{"lt", 2, [](Args a) { return a[0] < a[1] ? 1.0 : 0.0; }, "({0} < {1} ? 1.0f : 0.0f)"},
    Function{"le", 2, [](Args a) { return a[0] <= a[1] ? 1.0 : 0.0; },
             "({0} <= {1} ? 1.0f : 0.0f)"},
    Function{"gt", 2, [](Args a) { return a[0] > a[1] ? 1.0 : 0.0; }, "({0} > {1} ? 1.0f : 0.0f)"},
    Function{"ge", 2, [](Args a) { return a[0] >= a[1] ? 1.0 : 0.0; },
             "({0} >= {1} ? 1.0f : 0.0f)"},
    Function{"logical_and", 2, [](Args a) { return a[0] != 0 && a[1] != 0 ? 1.0 : 0.0; },
             "tsr_and({0}, {1})"},
    Function{"logical_or", 2, [](Args a) { return a[0] != 0 || a[1] != 0 ? 1.0 : 0.0; },
             "tsr_or({0}, {1})"},
    Function{"logical_xor", 2, [](Args a) { return (a[0] != 0) != (a[1] != 0) ? 1.0 : 0.0; },
             "tsr_xor({0}, {1})"},
    Function{"logical_not", 1, [](Args a) { return a[0] == 0 ? 1.0 : 0.0; },
             "({0} == 0.0f ? 1.0f : 0.0f)"},
    Function{"isnan", 1, [](Args a) { return std::isnan(a[0]) ? 1.0 : 0.0; },
             "({0} != {0} ? 1.0f : 0.0f)"},
    Function{"isinf", 1, [](Args a) { return std::fabs(a[0]) == inf ? 1.0 : 0.0; },
             "(tsr_abs({0}) == tsr_inf() ? 1.0f : 0.0f)"},
    // Rounding.
    Function{"floor", 1, [](Args a) { return std::floor(a[0]); }, "tsr_floor({0})"},
    Function{"ceil", 1, [](Args a) { return std::ceil(a[0]); }, "tsr_ceil({0})"},
    Function{"trunc", 1, [](Args a) { return std::trunc(a[0]); }, "tsr_trunc({0})"},
    Function{"round", 1, [](Args a) { return std::nearbyint(a[0]); }, "tsr_round({0})"},
    Function{"sign", 1, [](Args a) { return sign(a[0]); }, "tsr_sign({0})"},
};

}  // namespace

std::span<const Function> functions() {
  return table;
}

const Function* find(std::string_view name) {
  const auto* it =
      std::find_if(table.begin(), table.end(), [&](const Function& f) { return f.name == name; });
  return it == table.end() ? nullptr : it;
}

}  // namespace tessera::pointwise
