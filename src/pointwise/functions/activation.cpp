// Activation functions. Values follow PyTorch, also for infinities and NaN.
#include <algorithm>
#include <cmath>

#include "pointwise/pointwise.h"

namespace tessera::pointwise::families {
namespace {

using Args = std::span<const double>;

double sigmoid(double x) {
  return 1.0 / (1.0 + std::exp(-x));
}
double softplus(double x) {
  return x > 20 ? x : std::log1p(std::exp(x));
}
double clamp(double x, double low, double high) {
  return std::isnan(x) ? x : std::min(std::max(x, low), high);
}
double gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
constexpr double selu_alpha = 1.6732632423543772848170429916717;
constexpr double selu_scale = 1.0507009873554804934193349852946;

constexpr Function functions[] = {
    {"tanh", 1, [](Args a) { return std::tanh(a[0]); }, "tsr_tanh({0})", "aten.tanh"},
    {"sigmoid", 1, [](Args a) { return sigmoid(a[0]); }, "tsr_sigmoid({0})", "aten.sigmoid"},
    {"log_sigmoid", 1,
     [](Args a) { return std::fmin(a[0], 0) - std::log1p(std::exp(-std::fabs(a[0]))); },
     "tsr_log_sigmoid({0})", "aten.log_sigmoid"},
    {"silu", 1, [](Args a) { return a[0] / (1 + std::exp(-a[0])); }, "tsr_silu({0})", "aten.silu"},
    {"gelu_erf", 1, [](Args a) { return 0.5 * a[0] * (1 + std::erf(a[0] * M_SQRT1_2)); },
     "tsr_gelu_erf({0})"},
    {"gelu_tanh", 1, [](Args a) { return gelu_tanh(a[0]); }, "tsr_gelu_tanh({0})"},
    {"relu", 1, [](Args a) { return a[0] < 0 ? 0 : a[0]; }, "tsr_relu({0})", "aten.relu"},
    {"relu6", 1, [](Args a) { return clamp(a[0], 0, 6); }, "tsr_clamp({0}, 0.0f, 6.0f)",
     "aten.relu6"},
    {"leaky_relu", 2, [](Args a) { return a[0] > 0 ? a[0] : a[0] * a[1]; },
     "tsr_leaky_relu({0}, {1})"},
    {"elu", 2, [](Args a) { return a[0] > 0 ? a[0] : a[1] * std::expm1(a[0]); },
     "tsr_elu({0}, {1})"},
    {"selu", 1,
     [](Args a) { return selu_scale * (a[0] > 0 ? a[0] : selu_alpha * std::expm1(a[0])); },
     "tsr_selu({0})", "aten.selu"},
    {"softplus", 3,
     [](Args a) { return a[0] * a[1] > a[2] ? a[0] : std::log1p(std::exp(a[0] * a[1])) / a[1]; },
     "tsr_softplus({0}, {1}, {2})"},
    {"softsign", 1, [](Args a) { return a[0] / (1 + std::fabs(a[0])); }, "tsr_softsign({0})"},
    {"mish", 1, [](Args a) { return a[0] * std::tanh(softplus(a[0])); }, "tsr_mish({0})",
     "aten.mish"},
    {"hardswish", 1, [](Args a) { return a[0] * clamp(a[0] + 3, 0, 6) / 6; }, "tsr_hardswish({0})",
     "aten.hardswish"},
    {"hardsigmoid", 1, [](Args a) { return clamp(a[0] + 3, 0, 6) / 6; }, "tsr_hardsigmoid({0})",
     "aten.hardsigmoid"},
    {"softshrink", 2,
     [](Args a) { return a[0] > a[1]    ? a[0] - a[1]
                         : a[0] < -a[1] ? a[0] + a[1]
                                        : a[0] * 0; },
     "tsr_softshrink({0}, {1})"},
    {"hardshrink", 2, [](Args a) { return a[0] >= -a[1] && a[0] <= a[1] ? 0 : a[0]; },
     "tsr_hardshrink({0}, {1})"},
    {"threshold", 3, [](Args a) { return a[0] <= a[1] ? a[2] : a[0]; },
     "tsr_threshold({0}, {1}, {2})"},
    {"clamp", 3, [](Args a) { return clamp(a[0], a[1], a[2]); }, "tsr_clamp({0}, {1}, {2})"},
};

}  // namespace

extern const Family activation{functions};

}  // namespace tessera::pointwise::families
