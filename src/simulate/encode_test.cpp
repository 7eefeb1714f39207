#include "simulate/encode.h"

#include <array>
#include <cmath>
#include <gtest/gtest.h>

#include "numeric/round.h"

namespace tessera::simulate {
namespace {

/// Every pattern of the type's bits comes back, but for the payloads of NaN.
void every_pattern(DType t) {
  const int bits = 8 * size_of(t);
  for (uint32_t i = 0; i < (1U << bits); ++i) {
    const std::array<uint8_t, 2> bytes = {static_cast<uint8_t>(i), static_cast<uint8_t>(i >> 8)};
    const double v = decode(t, bytes.data());
    if (std::isnan(v)) continue;
    EXPECT_TRUE(v == round_to(t, v)) << name_of(t) << " " << i;
    std::array<uint8_t, 2> back = {0, bits == 8 ? bytes[1] : uint8_t{0}};
    encode(t, v, back.data());
    EXPECT_EQ(back, bytes) << name_of(t) << " " << i << " " << v;
  }
}

TEST(SimulateEncode, BytesAndValuesAreInverses) {
  for (DType t : {DType::bfloat16, DType::float16, DType::float8_e4m3fn, DType::float8_e5m2,
                  DType::int16, DType::int8, DType::uint8})
    every_pattern(t);
}

TEST(SimulateEncode, Rounds) {
  std::array<uint8_t, 8> b{};
  encode(DType::float32, 0.1, b.data());
  EXPECT_EQ(decode(DType::float32, b.data()), 0.1F);
  encode(DType::bfloat16, 1.00390625, b.data());  // between 1 and 1 + 2^-7, to even
  EXPECT_EQ(decode(DType::bfloat16, b.data()), 1);
  encode(DType::float16, 1e6, b.data());
  EXPECT_TRUE(std::isinf(decode(DType::float16, b.data())));
  encode(DType::float8_e4m3fn, 1e6, b.data());
  EXPECT_TRUE(std::isnan(decode(DType::float8_e4m3fn, b.data())));
  encode(DType::int32, -7.9, b.data());
  EXPECT_EQ(decode(DType::int32, b.data()), -7);
  encode(DType::int64, 1e15, b.data());
  EXPECT_EQ(decode(DType::int64, b.data()), 1e15);
}

}  // namespace
}  // namespace tessera::simulate
