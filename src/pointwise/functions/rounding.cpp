// Rounding, and the sign. Values follow PyTorch, also for infinities and NaN.
#include <cmath>

#include "pointwise/pointwise.h"

namespace tessera::pointwise::families {
namespace {

using Args = std::span<const double>;

double sign(double x) {
  return static_cast<double>(x > 0) - static_cast<double>(x < 0);
}

constexpr Function functions[] = {
    {"floor", 1, [](Args a) { return std::floor(a[0]); }, "tsr_floor({0})", "aten.floor"},
    {"ceil", 1, [](Args a) { return std::ceil(a[0]); }, "tsr_ceil({0})", "aten.ceil"},
    {"trunc", 1, [](Args a) { return std::trunc(a[0]); }, "tsr_trunc({0})", "aten.trunc"},
    {"round", 1, [](Args a) { return std::nearbyint(a[0]); }, "tsr_round({0})"},
    {"sign", 1, [](Args a) { return sign(a[0]); }, "tsr_sign({0})", "aten.sign"},
};

}  // namespace

extern const Family rounding{functions};

}  // namespace tessera::pointwise::families
