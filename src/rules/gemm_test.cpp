// What the rule takes, and what it refuses with which reason. That bodies mean what their nodes
// compute is tested against PyTorch in python/tests/test_rules.py.
#include "rules/gemm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rules/common/testing.h"

namespace tessera::rules {
namespace {

using namespace testing;

TEST(Gemm, TakesTheEpilogueAndTheBareProduct) {
  GraphBuilder b;
  const ValueId x = b.input("x", {2, 16, 32});
  const ValueId y = b.gelu(b.linear(x, 64));
  b.output(b.binary("add", y, b.input("r", {2, 16, 64})));
  const Matches m = rule("gemm").match(b.g);
  ASSERT_EQ(m.patterns.size(), 2u);
  const auto& full = body<GemmBody>(m.patterns[0]);
  EXPECT_EQ(full.m, 32);
  EXPECT_EQ(full.n, 64);
  EXPECT_EQ(full.k, 32);
  EXPECT_EQ(m.patterns[0].roles.to_json(), Json({{"fan_in", 32}}));
  EXPECT_EQ(full.epilogue.to_string(), "add(gelu_tanh(add(%0, %1)), %2)");
  EXPECT_THAT(full.operands.at(0).strides, ::testing::ElementsAre(0, 0, 1));
  EXPECT_THAT(full.operands.at(1).strides, ::testing::ElementsAre(0, 64, 1));
  EXPECT_EQ(body<GemmBody>(m.patterns[1]).epilogue.to_string(), "add(%0, %1)");
}

TEST(Gemm, StoresAnIntermediateThatOthersNeed) {
  GraphBuilder b;
  const ValueId y = b.linear(b.input("x", {16, 32}), 64);
  b.output(y);
  b.output(b.gelu(y));
  const Matches m = rule("gemm").match(b.g);
  EXPECT_EQ(m.patterns.at(0).outputs.size(), 2u);
}

TEST(Gemm, AnEpilogueMayNotCloseACycle) {
  GraphBuilder b;
  const ValueId y = b.linear(b.input("x", {16, 32}, {}), 32);
  // The other operand comes from the result through a norm that cannot be in the epilogue.
  const ValueId z = b.binary("add", y, b.layer_norm(y));
  b.output(z);
  const Matches m = rule("gemm").match(b.g);
  ASSERT_EQ(m.patterns.size(), 1u);
  EXPECT_EQ(m.patterns[0].computing.size(), 1u);
  EXPECT_TRUE(rejected(m.rejections, b.node(z), "depends on the result"));
}

TEST(Gemm, TakesARotationAsAPartOfItsColumns) {
  GraphBuilder b;
  const ValueId y = b.linear(b.input("x", {6, 32}), 80, false);
  const ValueId all = b.cat({rotated(b, y, 64), b.slice(y, 1, 64, 80)}, 1);
  b.output(all);
  const Matches m = rule("gemm").match(b.g);
  ASSERT_EQ(m.patterns.size(), 2u);
  const auto& whole = body<GemmBody>(m.patterns[0]);
  ASSERT_EQ(whole.parts.size(), 2u);
  const ColumnPart& turned = whole.parts[0];
  EXPECT_EQ(turned.columns, 64);
  EXPECT_EQ(turned.period, 16);
  EXPECT_EQ(turned.dag.to_string(),
            "add(mul(%0, %2), mul(neg(%1), %3)); add(mul(%1, %4), mul(%0, %5))");
  ASSERT_EQ(turned.operands.size(), 4u);
  EXPECT_THAT(turned.operands[2].shape, ::testing::ElementsAre(6, 4, 8));
  EXPECT_THAT(turned.operands[2].strides, ::testing::ElementsAre(16, 0, 1));
  EXPECT_EQ(turned.operands[2].offset, 8);
  EXPECT_TRUE(whole.parts[1].plain());
  EXPECT_EQ(whole.parts[1].first, 64);
  EXPECT_EQ(whole.outputs.size(), 1u);
  EXPECT_EQ(whole.epilogue.to_string(), "%0");
  EXPECT_EQ(m.patterns[0].computing.size(), 7u);
  // What the bare product says did not change: registries know it.
  const Json bare = body<GemmBody>(m.patterns[1]).to_json();
  EXPECT_FALSE(bare.contains("parts"));
  EXPECT_EQ(whole.to_json()["parts"][0]["period"], 16);
}

TEST(Gemm, ReadsEqualHalvesOfARotationsTablesOnce) {
  GraphBuilder b;
  const ValueId y = b.linear(b.input("x", {6, 32}), 80, false);
  b.output(b.cat({rotated(b, y, 64), b.slice(y, 1, 64, 80)}, 1));
  b.g.value(*b.g.find_value("cos")).facts["halves_equal"] = true;
  const Matches m = rule("gemm").match(b.g);
  ASSERT_EQ(m.patterns.size(), 2u);
  const ColumnPart& turned = body<GemmBody>(m.patterns[0]).parts.at(0);
  EXPECT_EQ(turned.dag.to_string(),
            "add(mul(%0, %2), mul(neg(%1), %3)); add(mul(%1, %2), mul(%0, %4))");
  ASSERT_EQ(turned.operands.size(), 3u);
  EXPECT_EQ(turned.operands[0].offset, 0);
  EXPECT_EQ(turned.operands[2].offset, 8);  // the other half of the sines
}

TEST(Gemm, ColumnsThatAreReadElsewhereAreNoPart) {
  GraphBuilder b;
  const ValueId y = b.linear(b.input("x", {6, 32}), 80, false);
  b.output(b.cat({rotated(b, y, 64), b.slice(y, 1, 64, 80)}, 1));
  b.output(b.unary("sin", y));
  for (const Pattern& p : rule("gemm").match(b.g).patterns)
    EXPECT_TRUE(body<GemmBody>(p).parts.empty());

  GraphBuilder rows;  // a concatenation of rows has no parts of columns
  const ValueId z = rows.linear(rows.input("x", {6, 32}), 80, false);
  const ValueId end =
      rows.cat({rows.unary("neg", rows.slice(z, 0, 0, 3)), rows.slice(z, 0, 3, 6)}, 0);
  rows.output(end);
  const Matches m = rule("gemm").match(rows.g);
  EXPECT_TRUE(rejected(m.rejections, rows.node(end), "cuts the rows"));
}

TEST(Gemm, RefusesWithTheReason) {
  GraphBuilder doubles(DType::float64, Precision::fp32);
  doubles.output(doubles.linear(doubles.input("x", {4, 8}), 8));
  EXPECT_TRUE(rejected(rule("gemm").match(doubles.g).rejections, doubles.g.order[0], "float64"));

  GraphBuilder scaled(DType::float8_e4m3fn, Precision::fp8);
  const ValueId w = scaled.transpose(scaled.input("w", {32, 16}), 0, 1);
  const ValueId one = scaled.input("one", {}, DType::float32);
  const ValueId y = scaled.call("aten._scaled_mm.default",
                                {{"self", scaled.input("x", {16, 16})},
                                 {"mat2", w},
                                 {"scale_a", one},
                                 {"scale_b", one},
                                 {"bias", graph::NoValue{}},
                                 {"scale_result", one}},
                                {16, 32});
  scaled.output(y);
  EXPECT_TRUE(rejected(rule("gemm").match(scaled.g).rejections, scaled.node(y), "scale of the"));
}

TEST(Gemm, KeepsTwoBatchDimsWithoutACommonStride) {
  GraphBuilder b;  // heads inside the rows
  const ValueId q = b.transpose(b.view(b.input("q", {2, 8, 32}), {2, 8, 4, 8}), 1, 2);
  const ValueId k = b.transpose(b.view(b.input("k", {2, 8, 32}), {2, 8, 4, 8}), 1, 2);
  const ValueId s =
      b.call("aten.matmul.default", {{"self", q}, {"other", b.transpose(k, 2, 3)}}, {2, 4, 8, 8});
  b.output(b.gelu(s));
  const Matches m = rule("gemm").match(b.g);
  ASSERT_EQ(m.patterns.size(), 2u);
  const auto& full = body<GemmBody>(m.patterns[0]);
  EXPECT_EQ(full.batch, 8);
  EXPECT_THAT(full.a.shape, ::testing::ElementsAre(2, 4, 8, 8));
  EXPECT_THAT(full.a.strides, ::testing::ElementsAre(256, 8, 32, 1));
  EXPECT_THAT(full.outputs.at(0).strides, ::testing::ElementsAre(256, 64, 8, 1));
  EXPECT_EQ(full.epilogue.to_string(), "gelu_tanh(%0)");
}

TEST(Gemm, ScalesOfFp8OperandsMultiplyTheProduct) {
  GraphBuilder b(DType::float8_e4m3fn, Precision::fp8);
  const ValueId w = b.transpose(b.input("w", {32, 16}), 0, 1);
  b.output(b.call("aten._scaled_mm.default",
                  {{"self", b.input("x", {16, 16})},
                   {"mat2", w},
                   {"scale_a", b.input("sa", {16, 1}, DType::float32)},
                   {"scale_b", b.input("sb", {}, DType::float32)},
                   {"bias", b.input("bias", {32}, DType::bfloat16)},
                   {"scale_result", graph::NoValue{}}},
                  {16, 32}, {}, DType::bfloat16));
  const Matches m = rule("gemm").match(b.g);
  ASSERT_EQ(m.patterns.size(), 1u);
  const auto& scaled = body<GemmBody>(m.patterns[0]);
  EXPECT_EQ(scaled.epilogue.to_string(), "add(mul(mul(%0, %1), %2), %3)");
  EXPECT_THAT(scaled.operands.at(0).strides, ::testing::ElementsAre(0, 1, 0));
  EXPECT_THAT(scaled.operands.at(1).strides, ::testing::ElementsAre(0, 0, 0));
  EXPECT_EQ(scaled.outputs.at(0).dtype, DType::bfloat16);
  EXPECT_EQ(m.patterns[0].precision, Precision::fp8);
}

TEST(Gemm, NotesWhatIsHard) {
  GraphBuilder b;
  b.output(b.linear(b.input("x", {256, 524288}), 256, false));
  const Matches m = rule("gemm").match(b.g);
  EXPECT_THAT(m.patterns.at(0).challenges,
              ::testing::Contains(::testing::HasSubstr("split-K or stream-K")));
  GraphBuilder odd;
  odd.output(odd.linear(odd.input("x", {128, 33}), 128, false));
  EXPECT_THAT(rule("gemm").match(odd.g).patterns.at(0).challenges,
              ::testing::Contains(::testing::HasSubstr("16-byte")));
}

}  // namespace
}  // namespace tessera::rules
