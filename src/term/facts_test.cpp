// Facts are sound for every operation, by brute force over small intervals and residue classes.
#include "term/facts.h"

#include <gtest/gtest.h>
#include <limits>

namespace tessera::term {
namespace {

constexpr int64_t most = std::numeric_limits<int64_t>::max();

std::vector<Facts> samples() {
  std::vector<Facts> out{facts_constant(0),
                         facts_constant(-3),
                         facts_constant(8),
                         {},
                         facts_of(0, std::nullopt),
                         facts_of(std::nullopt, 5),
                         facts_of(0, std::nullopt, 4, 0),
                         facts_of(-7, 20, 6, 4)};
  for (const int64_t low : {-9, -1, 0, 3})
    for (const int64_t high : {4, 7, 19})
      for (const int64_t modulus : {1, 2, 3, 8}) out.push_back(facts_of(low, high, modulus, 1));
  return out;
}

// Integers near zero that agree with the facts.
std::vector<int64_t> members(const Facts& f) {
  std::vector<int64_t> out;
  for (int64_t x = -24; x <= 24; ++x)
    if (f.holds(x)) out.push_back(x);
  return out;
}

template <class OfFacts, class OfValues>
void expect_sound(const char* name, OfFacts of_facts, OfValues of_values, bool positive_right,
                  int64_t right_most = 24) {
  int64_t tried = 0;
  for (const Facts& a : samples())
    for (const Facts& b : samples()) {
      const Facts f = of_facts(a, b);
      for (const int64_t x : members(a))
        for (const int64_t y : members(b)) {
          if (positive_right && (y < 1 || y > right_most)) continue;
          ++tried;
          ASSERT_TRUE(f.holds(of_values(x, y)))
              << name << " of " << x << " (" << to_string(a) << ") and " << y << " ("
              << to_string(b) << "): " << to_string(f);
        }
    }
  EXPECT_GT(tried, 10000);
}

TEST(Facts, AreSoundForEveryOperation) {
  expect_sound("+", facts_add, [](int64_t x, int64_t y) { return x + y; }, false);
  expect_sound("-", facts_subtract, [](int64_t x, int64_t y) { return x - y; }, false);
  expect_sound("*", facts_multiply, [](int64_t x, int64_t y) { return x * y; }, false);
  expect_sound("//", facts_divide, floor_quotient, true);
  expect_sound("%", facts_remainder, floor_remainder, true);
  expect_sound("^", facts_xor, [](int64_t x, int64_t y) { return x ^ y; }, false);
  expect_sound("&", facts_and, [](int64_t x, int64_t y) { return x & y; }, false);
  expect_sound("|", facts_or, [](int64_t x, int64_t y) { return x | y; }, false);
  expect_sound(
      "<<", facts_shift_left, [](int64_t x, int64_t y) { return x * (int64_t{1} << y); }, true);
  expect_sound(">>", facts_shift_right, [](int64_t x, int64_t y) { return x >> y; }, true);
  expect_sound("min", facts_min, [](int64_t x, int64_t y) { return std::min(x, y); }, false);
  expect_sound("max", facts_max, [](int64_t x, int64_t y) { return std::max(x, y); }, false);
  expect_sound("first", facts_join, [](int64_t x, int64_t) { return x; }, false);
  expect_sound("second", facts_join, [](int64_t, int64_t y) { return y; }, false);
}

TEST(Facts, IntervalAndCongruenceSharpenEachOther) {
  const Facts f = facts_of(1, 30, 8, 0);
  EXPECT_EQ(f.lower, 8);
  EXPECT_EQ(f.upper, 24);
  EXPECT_EQ(facts_of(9, 17, 8, 0).constant(), 16);
  EXPECT_TRUE(f.multiple_of(4));
  EXPECT_FALSE(f.multiple_of(16));
}

TEST(Facts, AreSharpWhereRulesNeedThem) {
  const Facts lane = facts_of(0, 31);
  EXPECT_EQ(facts_divide(lane, facts_constant(4)), facts_of(0, 7));
  EXPECT_EQ(facts_remainder(lane, facts_constant(4)), facts_of(0, 3));
  EXPECT_EQ(facts_xor(facts_of(0, 7), facts_of(0, 5)), facts_of(0, 7));
  EXPECT_EQ(to_string(facts_multiply(lane, facts_constant(16))), "[0, 496], 0 mod 16");
  EXPECT_EQ(facts_remainder(facts_of(0, std::nullopt, 64, 3), facts_constant(16)).constant(), 3);
}

TEST(Facts, BoundsBeyond64BitsAreUnknown) {
  const Facts large = facts_of(0, most);
  EXPECT_EQ(facts_add(large, facts_constant(1)).upper, std::nullopt);
  EXPECT_EQ(facts_add(large, facts_constant(1)).lower, 1);
  EXPECT_EQ(facts_multiply(large, facts_constant(2)).upper, std::nullopt);
  EXPECT_EQ(
      facts_multiply(facts_of(std::numeric_limits<int64_t>::min(), 0), facts_constant(-1)).upper,
      std::nullopt);
}

TEST(Facts, DivisionIsPythons) {
  EXPECT_EQ(floor_quotient(-7, 4), -2);
  EXPECT_EQ(floor_remainder(-7, 4), 1);
  EXPECT_EQ(floor_quotient(std::numeric_limits<int64_t>::min(), 1),
            std::numeric_limits<int64_t>::min());
}

}  // namespace
}  // namespace tessera::term
