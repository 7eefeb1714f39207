// Arithmetic. Values follow PyTorch, also for infinities and NaN.
#include <algorithm>
#include <cmath>

#include "pointwise/pointwise.h"

namespace tessera::pointwise::families {
namespace {

using Args = std::span<const double>;

/// Python's modulo: the result has the sign of the divisor.
double remainder(double a, double b) {
  const double m = std::fmod(a, b);
  return m != 0 && ((m < 0) != (b < 0)) ? m + b : m;
}
/// Python's division: by way of the remainder, so that what the quotient rounds off decides
/// nothing.
double div_floor(double a, double b) {
  if (b == 0) return a / b;
  const double m = std::fmod(a, b);
  double q = (a - m) / b;
  if (m != 0 && (b < 0) != (m < 0)) q -= 1;
  if (q == 0) return std::copysign(0.0, a / b);
  const double whole = std::floor(q);
  return q - whole > 0.5 ? whole + 1 : whole;
}
constexpr std::string_view div_floor_text = R"(
TSR_FN float tsr_div_floor(float a, float b) {
  const float m = tsr_fmod(a, b);
  const float exact = (a - m) / b;
  const float q = m != 0.0f && (b < 0.0f) != (m < 0.0f) ? exact - 1.0f : exact;
  const float whole = tsr_floor(q);
  const float near = q - whole > 0.5f ? whole + 1.0f : whole;
  const float y = q == 0.0f ? tsr_copysign(0.0f, a / b) : near;
  return b == 0.0f ? a / b : y;
}
)";
double logaddexp(Args a) {
  if (std::isinf(a[0]) && a[0] == a[1]) return a[0];
  return std::max(a[0], a[1]) + std::log1p(std::exp(-std::fabs(a[0] - a[1])));
}

constexpr Function functions[] = {
    {"add", 2, [](Args a) { return a[0] + a[1]; }, "({0} + {1})"},
    {"sub", 2, [](Args a) { return a[0] - a[1]; }, "({0} - {1})"},
    {"mul", 2, [](Args a) { return a[0] * a[1]; }, "({0} * {1})", "aten.mul"},
    {"fma", 3, [](Args a) { return a[0] * a[1] + a[2]; }, "tsr_fma({0}, {1}, {2})"},
    {"div", 2, [](Args a) { return a[0] / a[1]; }, "({0} / {1})"},
    {"neg", 1, [](Args a) { return -a[0]; }, "tsr_neg({0})", "aten.neg"},
    {"abs", 1, [](Args a) { return std::fabs(a[0]); }, "tsr_abs({0})", "aten.abs"},
    {"square", 1, [](Args a) { return a[0] * a[0]; }, "tsr_square({0})", "aten.square"},
    {"cube", 1, [](Args a) { return a[0] * a[0] * a[0]; }, "tsr_cube({0})"},
    {"reciprocal", 1, [](Args a) { return 1 / a[0]; }, "(1.0f / {0})", "aten.reciprocal"},
    {"sqrt", 1, [](Args a) { return std::sqrt(a[0]); }, "tsr_sqrt({0})", "aten.sqrt"},
    {"rsqrt", 1, [](Args a) { return 1 / std::sqrt(a[0]); }, "tsr_rsqrt({0})", "aten.rsqrt"},
    {"pow", 2, [](Args a) { return std::pow(a[0], a[1]); }, "tsr_pow({0}, {1})"},
    {"div_floor", 2, [](Args a) { return div_floor(a[0], a[1]); }, "tsr_div_floor({0}, {1})", "",
     div_floor_text},
    {"fmod", 2, [](Args a) { return std::fmod(a[0], a[1]); }, "tsr_fmod({0}, {1})", "aten.fmod"},
    {"remainder", 2, [](Args a) { return remainder(a[0], a[1]); }, "tsr_remainder({0}, {1})",
     "aten.remainder"},
    {"atan2", 2, [](Args a) { return std::atan2(a[0], a[1]); }, "tsr_atan2({0}, {1})",
     "aten.atan2"},
    {"hypot", 2, [](Args a) { return std::hypot(a[0], a[1]); }, "tsr_hypot({0}, {1})",
     "aten.hypot"},
    {"copysign", 2, [](Args a) { return std::copysign(a[0], a[1]); }, "tsr_copysign({0}, {1})",
     "aten.copysign"},
    {"logaddexp", 2, logaddexp, "tsr_logaddexp({0}, {1})", "aten.logaddexp"},
};

}  // namespace

extern const Family arithmetic{functions};

}  // namespace tessera::pointwise::families
