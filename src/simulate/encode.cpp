#include "simulate/encode.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "numeric/round.h"

namespace tessera::simulate {
namespace {

struct Small {
  int exponent_bits, significand_bits;
  bool infinities;
};
constexpr Small half{5, 10, true};
constexpr Small e5m2{5, 2, true};
constexpr Small e4m3{4, 3, false};

/// A float of few bits, its sign first.
double widen(Small s, uint32_t bits) {
  const int bias = (1 << (s.exponent_bits - 1)) - 1;
  const uint32_t significand = bits & ((1U << s.significand_bits) - 1);
  const int exponent = static_cast<int>(bits >> s.significand_bits) & ((1 << s.exponent_bits) - 1);
  const bool negative = (bits >> (s.significand_bits + s.exponent_bits) & 1) != 0;
  const int top = (1 << s.exponent_bits) - 1;
  double value = 0;
  if (exponent == top && s.infinities)
    value = significand != 0 ? std::numeric_limits<double>::quiet_NaN()
                             : std::numeric_limits<double>::infinity();
  else if (exponent == top && !s.infinities && significand == (1U << s.significand_bits) - 1)
    value = std::numeric_limits<double>::quiet_NaN();
  else if (exponent == 0)
    value = std::ldexp(significand, 1 - bias - s.significand_bits);
  else
    value =
        std::ldexp(significand + (1U << s.significand_bits), exponent - bias - s.significand_bits);
  return negative ? -value : value;
}

/// Of a value that the type has.
uint32_t narrow(Small s, double v) {
  const uint32_t sign = (std::signbit(v) ? 1U : 0U) << (s.significand_bits + s.exponent_bits);
  const uint32_t top = ((1U << s.exponent_bits) - 1) << s.significand_bits;
  if (std::isnan(v)) return top | ((1U << s.significand_bits) - 1);
  if (std::isinf(v)) return sign | top;
  const double a = std::fabs(v);
  if (a == 0) return sign;
  const int bias = (1 << (s.exponent_bits - 1)) - 1;
  const int exponent = std::max(std::ilogb(a), 1 - bias);
  const auto scaled = static_cast<uint32_t>(std::ldexp(a, s.significand_bits - exponent));
  // A subnormal lacks the leading one, so that its exponent field comes out as 0.
  return sign | ((static_cast<uint32_t>(exponent + bias - 1) << s.significand_bits) + scaled);
}

template <class T>
T load(const uint8_t* bytes) {
  T v;
  std::memcpy(&v, bytes, sizeof v);
  return v;
}
template <class T>
void store(T v, uint8_t* bytes) {
  std::memcpy(bytes, &v, sizeof v);
}

const std::array<float, 65536>& halves() {
  static const auto table = [] {
    std::array<float, 65536> out{};
    for (uint32_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(widen(half, i));
    return out;
  }();
  return table;
}

int64_t whole(double v) {
  return std::isfinite(v) && std::fabs(v) < 9.2e18 ? static_cast<int64_t>(v) : 0;
}

}  // namespace

double decode(DType t, const uint8_t* bytes) {
  switch (t) {
    case DType::float64:
      return load<double>(bytes);
    case DType::float32:
      return load<float>(bytes);
    case DType::bfloat16:
      return std::bit_cast<float>(static_cast<uint32_t>(load<uint16_t>(bytes)) << 16);
    case DType::float16:
      return halves()[load<uint16_t>(bytes)];
    case DType::float8_e4m3fn:
      return widen(e4m3, *bytes);
    case DType::float8_e5m2:
      return widen(e5m2, *bytes);
    case DType::int64:
      return static_cast<double>(load<int64_t>(bytes));
    case DType::int32:
      return load<int32_t>(bytes);
    case DType::int16:
      return load<int16_t>(bytes);
    case DType::int8:
      return load<int8_t>(bytes);
    case DType::uint8:
    case DType::boolean:
      return *bytes;
  }
  return 0;
}

void encode(DType t, double value, uint8_t* bytes) {
  const double v = round_to(t, value);
  switch (t) {
    case DType::float64:
      return store(v, bytes);
    case DType::float32:
      return store(static_cast<float>(v), bytes);
    case DType::bfloat16:
      return store(static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(v)) >> 16),
                   bytes);
    case DType::float16:
      return store(static_cast<uint16_t>(narrow(half, v)), bytes);
    case DType::float8_e4m3fn:
      return store(static_cast<uint8_t>(narrow(e4m3, v)), bytes);
    case DType::float8_e5m2:
      return store(static_cast<uint8_t>(narrow(e5m2, v)), bytes);
    case DType::int64:
      return store(whole(v), bytes);
    case DType::int32:
      return store(static_cast<int32_t>(whole(v)), bytes);
    case DType::int16:
      return store(static_cast<int16_t>(whole(v)), bytes);
    case DType::int8:
    case DType::uint8:
    case DType::boolean:
      return store(static_cast<uint8_t>(whole(v)), bytes);
  }
}

}  // namespace tessera::simulate
