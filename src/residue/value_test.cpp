#include "residue/value.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>

#include "residue/field.h"

namespace tessera::residue {
namespace {

Value drawn(std::mt19937_64& random) {
  return residues(random() % p, random() % q);
}

TEST(ResidueValue, TwoHasTheOrderQ) {
  EXPECT_EQ(p, 2 * q + 1);
  EXPECT_EQ(raised(2, q, p), 1U);
  EXPECT_NE(raised(2, 2, p), 1U);  // q is a prime: the order is 1, or it is q
  // Fermat's test to a few bases; both are primes by trial division too.
  for (const uint64_t m : {p, q})
    for (uint64_t d = 2; d * d <= m; ++d) ASSERT_NE(m % d, 0U) << d;
}

TEST(ResidueValue, FieldLaws) {
  std::mt19937_64 random(1);
  for (int n = 0; n < 200; ++n) {
    const Value a = drawn(random), b = drawn(random), c = drawn(random);
    EXPECT_TRUE(same(add(a, b), add(b, a)));
    EXPECT_TRUE(same(multiply(a, add(b, c)), add(multiply(a, b), multiply(a, c))));
    EXPECT_TRUE(same(multiply(divide(a, b), b), a));
    EXPECT_TRUE(same(add(a, negative(a)), number(0)));
    EXPECT_FALSE(same(add(a, b), add(a, c)));
    EXPECT_FALSE(same(a, multiply(a, b)));
  }
}

TEST(ResidueValue, PowersOfSumsAreProducts) {
  std::mt19937_64 random(2);
  for (int n = 0; n < 100; ++n) {
    const Value a = drawn(random), b = drawn(random);
    const Pair left = pair_of(power(add(a, b))), right = pair_of(multiply(power(a), power(b)));
    EXPECT_EQ(left.mod_p, right.mod_p);
    EXPECT_NE(pair_of(power(a)).mod_p, pair_of(power(b)).mod_p);
  }
  EXPECT_TRUE(same(power(number(3)), number(8)));
  EXPECT_EQ(pair_of(multiply(power(number(0.5)), power(number(0.5)))).mod_p, 2U);
  EXPECT_TRUE(same(power(number(-std::numeric_limits<double>::infinity())), number(0)));
}

/// Numbers are taken for what they are, and what no double holds becomes residues.
TEST(ResidueValue, NumbersAreExact) {
  const Value third = divide(number(1), number(3));
  EXPECT_FALSE(third.is_number());
  EXPECT_TRUE(same(multiply(third, number(3)), number(1)));
  EXPECT_TRUE(multiply(third, number(3)).is_number());
  const Value tenth = number(0.1);
  EXPECT_TRUE(same(add(add(tenth, tenth), tenth), multiply(number(3), tenth)));
  EXPECT_FALSE(same(add(add(tenth, tenth), tenth), number(0.3)));
  EXPECT_TRUE(same(multiply(number(0x1p-600), number(0x1p-600)),
                   divide(number(1), multiply(number(0x1p600), number(0x1p600)))));
}

TEST(ResidueValue, InfinitiesAndNothing) {
  const double infinity = std::numeric_limits<double>::infinity();
  std::mt19937_64 random(3);
  const Value x = drawn(random);
  EXPECT_TRUE(same(add(x, number(-infinity)), number(-infinity)));
  EXPECT_TRUE(add(number(infinity), number(-infinity)).is_nothing());
  EXPECT_TRUE(multiply(x, number(infinity)).is_nothing());  // nobody knows the sign of x
  EXPECT_TRUE(same(divide(x, number(infinity)), number(0)));
  EXPECT_TRUE(divide(x, number(0)).is_nothing());
  EXPECT_TRUE(number(std::nan("")).is_nothing());
  EXPECT_FALSE(same(nothing(), nothing()));
  EXPECT_TRUE(add(x, nothing()).is_nothing());
}

}  // namespace
}  // namespace tessera::residue
