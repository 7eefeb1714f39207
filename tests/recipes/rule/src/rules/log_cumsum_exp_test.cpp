#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rules/common/testing.h"

namespace tessera::rules {
namespace {

using namespace testing;

ValueId running_sum(GraphBuilder& b, ValueId x) {
  return b.call("aten.cumsum.default", {{"self", x}, {"dim", int64_t{-1}}}, b.type(x).shape);
}

TEST(LogCumsumExp, TakesTheThreeOpsAndNamesTheOneThatComputesThem) {
  GraphBuilder b;
  b.output(b.unary("log", running_sum(b, b.unary("exp", b.input("x", {4, 8})))));
  const Matches m = rule("log_cumsum_exp").match(b.g);
  ASSERT_EQ(m.patterns.size(), 1u);
  EXPECT_EQ(m.patterns[0].computing.size(), 3u);
  const auto calls = rule("log_cumsum_exp").library(m.patterns[0]);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].arguments.at("op"), "aten.logcumsumexp.default");
  EXPECT_EQ(calls[0].arguments.at("arguments").at("dim"), 1);
}

TEST(LogCumsumExp, LeavesASumThatOthersNeed) {
  GraphBuilder b;
  const ValueId sum = running_sum(b, b.unary("exp", b.input("x", {4, 8})));
  b.output(sum);
  b.output(b.unary("log", sum));
  EXPECT_TRUE(rule("log_cumsum_exp").match(b.g).patterns.empty());
}

}  // namespace
}  // namespace tessera::rules
