// What the rule takes, and what it refuses with which reason. That bodies mean what their nodes
// compute is tested against PyTorch in python/tests/test_rules.py.
#include "rules/row_norm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rules/common/testing.h"

namespace tessera::rules {
namespace {

using namespace testing;

TEST(RowNorm, TakesTheResidualAndLeavesItAsAnAlternative) {
  GraphBuilder b;
  const ValueId sum = b.binary("add", b.input("x", {16, 32}), b.input("r", {16, 32}));
  b.output(b.layer_norm(sum));
  b.output(sum);
  const Matches m = rule("row_norm").match(b.g);
  ASSERT_EQ(m.patterns.size(), 2u);
  const auto& with = body<RowNormBody>(m.patterns[0]);
  EXPECT_EQ(with.pre.to_string(), "add(%0, %1)");
  EXPECT_EQ(with.post.results.size(), 2u);
  EXPECT_EQ(m.patterns[0].outputs.size(), 2u);
  EXPECT_EQ(body<RowNormBody>(m.patterns[1]).pre.to_string(), "%0");
}

// Adaptive norms: a scale and a shift of each image, which no stride over all rows has.
TEST(RowNorm, RowsStayApartWhereWhatFollowsNeedsIt) {
  GraphBuilder b;
  const ValueId norm = b.layer_norm(b.input("x", {4, 16, 32}));
  b.output(b.binary("mul", norm, b.input("s", {4, 1, 32})));
  const Matches m = rule("row_norm").match(b.g);
  ASSERT_EQ(m.patterns.size(), 1u);
  EXPECT_EQ(body<RowNormBody>(m.patterns[0]).rows, (Shape{4, 16}));
  EXPECT_EQ(m.patterns[0].nodes.size(), 2u);
  EXPECT_TRUE(m.rejections.empty());

  GraphBuilder c;
  const ValueId plain = c.layer_norm(c.input("x", {4, 16, 32}));
  c.output(c.binary("mul", plain, c.input("s", {32})));
  const Matches merged = rule("row_norm").match(c.g);
  ASSERT_EQ(merged.patterns.size(), 1u);
  EXPECT_EQ(body<RowNormBody>(merged.patterns[0]).rows, (Shape{64}));
  EXPECT_EQ(merged.patterns[0].nodes.size(), 2u);
}

TEST(RowNorm, RefusesNumbersAlone) {
  GraphBuilder b;
  const ValueId x = b.input("x", {16, 32});
  b.g.value(x).facts["scalar"] = 2.0;
  const ValueId y = b.layer_norm(x);
  b.output(y);
  const Matches m = rule("row_norm").match(b.g);
  EXPECT_TRUE(m.patterns.empty());
  EXPECT_TRUE(rejected(m.rejections, b.node(y), "numbers alone"));
}

TEST(RowNorm, RefusesWhenStatisticsAreNeeded) {
  GraphBuilder b;
  const ValueId x = b.input("x", {16, 32});
  const ValueId y = b.call("aten.native_layer_norm.default",
                           {{"input", x},
                            {"normalized_shape", ints({32})},
                            {"weight", graph::NoValue{}},
                            {"bias", graph::NoValue{}},
                            {"eps", 1e-5}},
                           {16, 32});
  graph::Value mean;
  mean.name = "mean";
  mean.type = {DType::float32, {16, 1}, {1, 1}};
  mean.producer = b.node(y);
  mean.output_index = 1;
  const ValueId statistics = b.g.add_value(mean);
  b.g.node(b.node(y)).outputs.push_back(statistics);
  b.output(y);
  b.output(statistics);
  const Matches m = rule("row_norm").match(b.g);
  EXPECT_TRUE(m.patterns.empty());
  EXPECT_TRUE(rejected(m.rejections, b.node(y), "statistics"));
}

}  // namespace
}  // namespace tessera::rules
