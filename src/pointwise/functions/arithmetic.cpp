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
double logaddexp(Args a) {
  if (std::isinf(a[0]) && a[0] == a[1]) return a[0];
  return std::max(a[0], a[1]) + std::log1p(std::exp(-std::fabs(a[0] - a[1])));
}

constexpr Function functions[] = {
    {"add", 2, [](Args a) { return a[0] + a[1]; }, "({0} + {1})"},
    {"sub", 2, [](Args a) { return a[0] - a[1]; }, "({0} - {1})"},
    {"mul", 2, [](Args a) { return a[0] * a[1]; }, "({0} * {1})", "aten.mul"},
    {"div", 2, [](Args a) { return a[0] / a[1]; }, "({0} / {1})"},
    {"neg", 1, [](Args a) { return -a[0]; }, "(-{0})", "aten.neg"},
    {"abs", 1, [](Args a) { return std::fabs(a[0]); }, "tsr_abs({0})", "aten.abs"},
    {"square", 1, [](Args a) { return a[0] * a[0]; }, "tsr_square({0})", "aten.square"},
    {"cube", 1, [](Args a) { return a[0] * a[0] * a[0]; }, "tsr_cube({0})"},
    {"reciprocal", 1, [](Args a) { return 1 / a[0]; }, "(1.0f / {0})", "aten.reciprocal"},
    {"sqrt", 1, [](Args a) { return std::sqrt(a[0]); }, "tsr_sqrt({0})", "aten.sqrt"},
    {"rsqrt", 1, [](Args a) { return 1 / std::sqrt(a[0]); }, "tsr_rsqrt({0})", "aten.rsqrt"},
    {"pow", 2, [](Args a) { return std::pow(a[0], a[1]); }, "tsr_pow({0}, {1})"},
    {"fmod", 2, [](Args a) { return std::fmod(a[0], a[1]); }, "tsr_fmod({0}, {1})", "aten.fmod"},
    {"remainder", 2, [](Args a) { return remainder(a[0], a[1]); }, "tsr_remainder({0}, {1})",
     "aten.remainder"},
    {"atan2", 2, [](Args a) { return std::atan2(a[0], a[1]); }, "tsr_atan2({0}, {1})",
     "aten.atan2"},
    {"copysign", 2, [](Args a) { return std::copysign(a[0], a[1]); }, "tsr_copysign({0}, {1})",
     "aten.copysign"},
    {"logaddexp", 2, logaddexp, "tsr_logaddexp({0}, {1})", "aten.logaddexp"},
};

}  // namespace

extern const Family arithmetic{functions};

}  // namespace tessera::pointwise::families
