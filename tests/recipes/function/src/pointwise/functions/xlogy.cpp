// x log(y), which is 0 where x is, unless y is no number.
#include <cmath>

#include "pointwise/pointwise.h"

namespace tessera::pointwise::families {
namespace {

constexpr std::string_view helper = R"(TSR_FN float tsr_xlogy(float x, float y) {
  const float t = x * tsr_log(y);
  const float z = x == 0.0f ? 0.0f : t;
  return y == y ? z : y;
}
)";

double value(std::span<const double> a) {
  if (std::isnan(a[1])) return a[1];
  return a[0] == 0 ? 0 : a[0] * std::log(a[1]);
}

constexpr Function functions[] = {
    {"xlogy", 2, value, "tsr_xlogy({0}, {1})", "aten.xlogy", helper},
};

}  // namespace

extern const Family xlogy{functions};

}  // namespace tessera::pointwise::families
