// Rounding to whole numbers and to the types with fewer digits than float, and the sign. Values
// follow PyTorch, also for infinities and NaN.
#include <algorithm>
#include <cmath>

#include "pointwise/pointwise.h"

namespace tessera::pointwise::families {
namespace {

using Args = std::span<const double>;

double sign(double x) {
  return static_cast<double>(x > 0) - static_cast<double>(x < 0);
}

/// A floating type by its digits behind the leading one, the exponent of its smallest normal
/// number, its largest number, and what is beyond.
struct Format {
  int digits;
  int least;
  double most;
  double beyond;
};

/// The nearest number of the format, ties to even, as PyTorch converts a float.
double nearest(double x, const Format& to) {
  const auto a = std::fabs(static_cast<double>(static_cast<float>(x)));
  if (std::isnan(a)) return x;
  if (std::isinf(a)) return std::copysign(to.beyond, x);
  const int exponent = a == 0 ? to.least : std::max(std::ilogb(a), to.least);
  const double unit = std::ldexp(1.0, exponent - to.digits);
  const double r = std::nearbyint(a / unit) * unit;
  return std::copysign(r > to.most ? to.beyond : r, x);
}

constexpr Format bfloat16{7, -126, 0x1.fep127, HUGE_VAL};
constexpr Format float16{10, -14, 65504, HUGE_VAL};
constexpr Format e4m3{3, -6, 448, NAN};
constexpr Format e5m2{2, -14, 57344, HUGE_VAL};

/// `drop` digits of float go; below `least` the unit is a fixed one, and adding 1.5 * 2^23 of it
/// (`magic`) rounds to it.
constexpr std::string_view narrowed = R"(
TSR_FN float tsr_narrowed(float x, unsigned drop, float least, float magic, float most, float beyond) {
  const float a = tsr_abs(x);
  const unsigned u = tsr_as_uint(a);
  const float n = tsr_as_float((u + ((1u << (drop - 1u)) - 1u) + ((u >> drop) & 1u)) & ~((1u << drop) - 1u));
  const float d = (a + magic) - magic;
  const float r = a < least ? d : n;
  const float c = r > most ? beyond : r;
  return x == x ? tsr_copysign(c, x) : x;
}
)";

constexpr Function functions[] = {
    {"round_bfloat16", 1, [](Args a) { return nearest(a[0], bfloat16); },
     "tsr_narrowed({0}, 16u, 0.0f, 1.0f, 0x1.fep127f, tsr_inf())", "", narrowed},
    {"round_float16", 1, [](Args a) { return nearest(a[0], float16); },
     "tsr_narrowed({0}, 13u, 0x1p-14f, 0.75f, 65504.0f, tsr_inf())"},
    {"round_float8_e4m3fn", 1, [](Args a) { return nearest(a[0], e4m3); },
     "tsr_narrowed({0}, 20u, 0x1p-6f, 24576.0f, 448.0f, tsr_nan())"},
    {"round_float8_e5m2", 1, [](Args a) { return nearest(a[0], e5m2); },
     "tsr_narrowed({0}, 21u, 0x1p-14f, 192.0f, 57344.0f, tsr_inf())"},
    {"floor", 1, [](Args a) { return std::floor(a[0]); }, "tsr_floor({0})", "aten.floor"},
    {"ceil", 1, [](Args a) { return std::ceil(a[0]); }, "tsr_ceil({0})", "aten.ceil"},
    {"trunc", 1, [](Args a) { return std::trunc(a[0]); }, "tsr_trunc({0})", "aten.trunc"},
    {"round", 1, [](Args a) { return std::nearbyint(a[0]); }, "tsr_round({0})"},
    {"sign", 1, [](Args a) { return sign(a[0]); }, "tsr_sign({0})", "aten.sign"},
};

}  // namespace

extern const Family rounding{functions};

}  // namespace tessera::pointwise::families
