#include "residue/functions.h"

#include <gtest/gtest.h>
#include <limits>
#include <random>

namespace tessera::residue {
namespace {

Value drawn(uint64_t seed) {
  std::mt19937_64 random(seed);
  return residues(random() % p, random() % q);
}
Value call(std::string_view name, const std::vector<Value>& arguments) {
  return result_of(*pointwise::find(name), arguments);
}

TEST(ResidueFunctions, WhatIsMadeOfPowersHasTheirLaws) {
  const Value x = drawn(1), one = number(1);
  const auto same_p = [](const Value& a, const Value& b) {
    return pair_of(a).mod_p == pair_of(b).mod_p;
  };
  EXPECT_TRUE(same_p(add(call("sigmoid", {x}), call("sigmoid", {negative(x)})), one));
  EXPECT_TRUE(same_p(call("tanh", {negative(x)}), negative(call("tanh", {x}))));
  EXPECT_TRUE(same(call("tanh", {x}), call("tanh_approx", {x})));
  EXPECT_TRUE(same(call("silu", {x}), multiply(x, call("sigmoid", {x}))));
  EXPECT_TRUE(same(call("pow", {x, number(3)}), call("cube", {x})));
  EXPECT_TRUE(same(call("pow", {x, number(-1)}), call("reciprocal", {x})));
}

TEST(ResidueFunctions, UnknownOnesAreFunctions) {
  const Value x = drawn(1), y = drawn(2);
  for (const char* name : {"erf", "log", "sqrt", "gelu_erf", "sin"}) {
    EXPECT_TRUE(same(call(name, {x}), call(name, {add(add(x, y), negative(y))}))) << name;
    EXPECT_FALSE(same(call(name, {x}), call(name, {y}))) << name;
    EXPECT_FALSE(same(call(name, {x}), call("cos", {x}))) << name;
  }
}

/// Whoever takes the greatest of some gets the same one, in whatever order.
TEST(ResidueFunctions, TheOrderIsOne) {
  std::vector<Value> all = {number(-std::numeric_limits<double>::infinity()), number(0), number(6)};
  for (uint64_t n = 0; n < 20; ++n) all.push_back(drawn(n));
  std::mt19937_64 random(9);
  Value most = all.front(), least_of_all = all.front();
  for (const Value& v : all) most = greatest(most, v), least_of_all = least(least_of_all, v);
  EXPECT_TRUE(same(least_of_all, all.front()));
  for (int n = 0; n < 20; ++n) {
    std::shuffle(all.begin(), all.end(), random);
    Value other = all.front();
    for (const Value& v : all) other = greatest(v, other);
    EXPECT_TRUE(same(other, most));
  }
  int below = 0;
  for (uint64_t n = 0; n < 100; ++n) below += same(call("relu", {drawn(n)}), number(0)) ? 1 : 0;
  EXPECT_GT(below, 20);
  EXPECT_LT(below, 80);
}

TEST(ResidueFunctions, NumbersCompareAsNumbers) {
  EXPECT_TRUE(
      same(call("where", {call("lt", {number(3), number(4)}), number(1), nothing()}), number(1)));
  EXPECT_TRUE(same(call("clamp", {number(9), number(0), number(6)}), number(6)));
  EXPECT_TRUE(same(call("isnan", {nothing()}), number(1)));
}

/// Constants are float32's, so that one that was computed in another order is the same.
TEST(ResidueFunctions, ConstantsAreThoseOfTheMachine) {
  const double scale = 1 / 3.0, e = 1.4426950408889634;
  EXPECT_TRUE(same(constant(scale * e), constant(e / 3)));
  EXPECT_FALSE(same(constant(0.044715), constant(0.0447)));
}

}  // namespace
}  // namespace tessera::residue
