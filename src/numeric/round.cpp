#include "numeric/round.h"

#include <cmath>
#include <limits>

namespace tessera {
namespace {

/// Nearest even at `bits` of significand (with the hidden one), smallest normal exponent
/// `min_exponent`.
double round_significand(double v, int bits, int min_exponent, double largest) {
  if (v == 0 || !std::isfinite(v)) return v;
  int exponent = 0;
  std::frexp(v, &exponent);  // |v| in [2^(exponent-1), 2^exponent)
  int quantum = std::max(exponent - 1, min_exponent) - (bits - 1);
  double scaled = std::nearbyint(std::ldexp(v, -quantum));
  double r = std::ldexp(scaled, quantum);
  if (std::fabs(r) > largest) return std::copysign(std::numeric_limits<double>::infinity(), v);
  return r;
}

}  // namespace

double round_to(DType t, double v) {
  switch (t) {
    case DType::float64:
      return v;
    case DType::float32:
      return static_cast<float>(v);
    case DType::bfloat16:
      return round_significand(v, 8, -126, 3.3895313892515355e38);
    case DType::float16:
      return round_significand(v, 11, -14, 65504);
    case DType::float8_e5m2:
      return round_significand(v, 3, -14, 57344);
    case DType::float8_e4m3fn: {
      double r = round_significand(v, 4, -6, 448);
      return std::isinf(r) ? std::numeric_limits<double>::quiet_NaN() : r;
    }
    case DType::boolean:
      return v != 0 ? 1 : 0;
    default:
      return std::trunc(v);
  }
}

}  // namespace tessera
