// What the rule takes, and what it refuses with which reason. That bodies mean what their nodes
// compute is tested against PyTorch in python/tests/test_rules.py.
#include "rules/pointwise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rules/common/testing.h"

namespace tessera::rules {
namespace {

using namespace testing;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Pointwise, RotatedAndOtherColumnsAreOneLoop) {
  GraphBuilder b;
  const ValueId y = b.input("y", {6, 80});
  b.output(b.cat({rotated(b, y, 48), b.slice(y, 1, 48, 80)}, 1));
  const Matches m = rule("pointwise").match(b.g);
  ASSERT_EQ(m.patterns.size(), 1u);
  const auto& all = body<PointwiseBody>(m.patterns[0]);
  ASSERT_EQ(all.groups.size(), 1u);
  // 3 first and 3 second halves of heads, and 4 pieces of their size.
  EXPECT_EQ(all.groups[0].outputs.size(), 10u);

  GraphBuilder apart;  // pieces of other widths: nothing in common but the rows
  const ValueId x = apart.input("x", {6, 80});
  apart.output(
      apart.cat({apart.unary("neg", apart.slice(x, 1, 0, 33)), apart.slice(x, 1, 33, 80)}, 1));
  const Matches two = rule("pointwise").match(apart.g);
  ASSERT_EQ(two.patterns.size(), 1u);
  EXPECT_EQ(body<PointwiseBody>(two.patterns[0]).groups.size(), 2u);
}

TEST(Pointwise, SplitsRotaryAtTheConcatenation) {
  GraphBuilder b;
  const ValueId x = b.input("x", {4, 16, 64}), c = b.input("c", {16, 64}),
                s = b.input("s", {16, 64});
  const ValueId turned = b.cat({b.unary("neg", b.slice(x, 2, 32, 64)), b.slice(x, 2, 0, 32)}, 2);
  b.output(b.binary("add", b.binary("mul", x, c), b.binary("mul", turned, s)));
  const Matches m = rule("pointwise").match(b.g);
  ASSERT_EQ(m.patterns.size(), 1u);
  EXPECT_EQ(m.patterns[0].computing.size(), 5u);
  const auto& groups = body<PointwiseBody>(m.patterns[0]).groups;
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_THAT(groups[0].shape, ::testing::ElementsAre(4, 16, 32));
  ASSERT_EQ(groups[0].outputs.size(), 2u);
  EXPECT_EQ(groups[0].outputs[1].offset, 32);
  EXPECT_EQ(groups[0].operands.size(), 6u);  // both halves of x, c and s
}

TEST(Pointwise, ATableOfTwoEqualHalvesIsReadInLoopsThatWereMerged) {
  GraphBuilder b;
  const ValueId x = b.input("x", {4, 16, 64}), table = b.input("table", {4, 16, 64});
  b.g.value(table).facts["halves_equal"] = true;
  b.output(b.unary("exp", b.binary("mul", x, table)));
  const Matches m = rule("pointwise").match(b.g);
  ASSERT_EQ(m.patterns.size(), 1u);
  const auto& groups = body<PointwiseBody>(m.patterns[0]).groups;
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_THAT(groups[0].shape, ::testing::ElementsAre(4096));
  EXPECT_EQ(groups[0].operands[1].offset, 0);
}

TEST(Pointwise, LeavesAChainThatWouldCloseACycle) {
  GraphBuilder b;
  const ValueId x = b.input("x", {256, 256});
  const ValueId y = b.unary("exp", x);
  const ValueId z = b.binary("add", y, b.linear(y, 256));
  b.output(z);
  for (const Pattern& p : rule("pointwise").match(b.g).patterns) EXPECT_EQ(p.computing.size(), 1u);
}

TEST(Pointwise, RefusesIntegersAndSmallLoneOps) {
  GraphBuilder b;
  const ValueId i = b.input("i", {1024, 1024}, DType::int64);
  const ValueId j = b.call("aten.neg.default", {{"self", i}}, {1024, 1024}, {}, DType::int64);
  const ValueId y = b.unary("exp", b.input("x", {8, 8}));
  b.output(j);
  b.output(y);
  const Matches m = rule("pointwise").match(b.g);
  EXPECT_TRUE(m.patterns.empty());
  EXPECT_TRUE(rejected(m.rejections, b.node(j), "int64"));
  EXPECT_TRUE(rejected(m.rejections, b.node(y), "bound by its launch"));
}

TEST(Pointwise, LeavesTheCopyOfAttentionsResultToAttention) {
  const auto of = [](bool attends) {
    GraphBuilder b;
    const ValueId q = b.input("q", {2, 4, 256, 64});
    const ValueId o = attends ? b.sdpa(q, q, q, true) : q;
    const ValueId across =
        b.call("aten.transpose.int", {{"self", o}, {"dim0", int64_t{1}}, {"dim1", int64_t{2}}},
               {2, 256, 4, 64}, {65536, 64, 16384, 1});
    const ValueId copy = b.call(
        "aten.clone.default",
        {{"self", across}, {"memory_format", std::string("contiguous_format")}}, {2, 256, 4, 64});
    b.output(b.linear(b.view(copy, {2, 256, 256}), 64));
    return rule("pointwise").match(b.g);
  };
  EXPECT_EQ(of(false).patterns.size(), 1u);
  const Matches m = of(true);
  EXPECT_TRUE(m.patterns.empty());
  ASSERT_EQ(m.rejections.size(), 1u);
  EXPECT_THAT(m.rejections[0].reason, ::testing::HasSubstr("written its result in this layout"));
}

TEST(Pointwise, TakesWhatFollowsAReductionUnlessTheReducedValueIsNeededToo) {
  const auto of = [](bool needed) {
    GraphBuilder b;
    const ValueId x = b.input("x", {64, 8});
    const ValueId sum = b.call("aten.sum.dim_IntList",
                               {{"self", x}, {"dim", graph::ArgumentList{int64_t{1}}}}, {64});
    b.output(b.unary("rsqrt", sum));
    if (needed) b.output(sum);
    const Matches m = rule("pointwise").match(b.g);
    for (const Pattern& p : m.patterns) {
      const auto& found = body<PointwiseBody>(p);
      if (found.reduction == "sum") return found.finish.empty() ? "" : found.finish.to_string();
    }
    return std::string("no reduction");
  };
  EXPECT_EQ(of(false), "rsqrt(%0)");
  EXPECT_EQ(of(true), "");
}

TEST(Pointwise, RefusesTheReductionOfAScalarAlongTheDimThatItDoesNotHave) {
  for (const int64_t dim : {0, -1}) {
    GraphBuilder b;
    const ValueId y =
        b.call("aten.sum.dim_IntList", {{"self", b.input("x", {})}, {"dim", ints({dim})}}, {});
    b.output(y);
    EXPECT_TRUE(rejected(rule("pointwise").match(b.g).rejections, b.node(y), "over one element"));
  }
}

TEST(Pointwise, RefusesTheReductionOfNumbersAlone) {
  GraphBuilder b;
  const ValueId x = b.input("x", {64, 8});
  b.g.value(x).facts["scalar"] = 2.0;
  const ValueId y = b.call("aten.sum.dim_IntList", {{"self", x}, {"dim", ints({1})}}, {64});
  b.output(y);
  EXPECT_TRUE(rejected(rule("pointwise").match(b.g).rejections, b.node(y), "numbers alone"));
}

TEST(Pointwise, RefusesElementsOfNumbersAlone) {
  GraphBuilder b;
  const ValueId x = b.input("x", {512, 1024});
  b.g.value(x).facts["scalar"] = 2.0;
  const ValueId y = b.call("aten.exp.default", {{"self", x}}, {512, 1024});
  const ValueId z =
      b.call("aten.mul.Tensor", {{"self", y}, {"other", b.input("z", {512, 1024})}}, {512, 1024});
  b.output(y);
  b.output(z);
  const Matches found = rule("pointwise").match(b.g);
  EXPECT_TRUE(rejected(found.rejections, b.node(y), "numbers alone"));
  ASSERT_EQ(found.patterns.size(), 1U);  // with a tensor it is one of several results
  EXPECT_EQ(found.patterns[0].outputs.size(), 2U);
}

TEST(Pointwise, RefusesReductionsItCannotExpress) {
  GraphBuilder b;
  const ValueId y =
      b.call("aten.argmax.default", {{"self", b.input("x", {8, 8})}, {"dim", int64_t{1}}}, {8}, {},
             DType::int64);
  b.output(y);
  EXPECT_TRUE(rejected(rule("pointwise").match(b.g).rejections, b.node(y), "not among sum"));
}

/// E[x^2] - E[x]^2 of equal elements is 0 where both are rounded, as in eager.
TEST(Pointwise, AProductThatIsTakenFromWhatWasStoredIsRounded) {
  const auto text = [](DType type, bool stored) {
    GraphBuilder b(type, type == DType::float32 ? Precision::fp32 : Precision::bf16);
    const ValueId x = b.input("x", {64, 64}), m = b.input("m", {64, 64});
    b.output(b.unary("exp", b.binary("sub", stored ? b.linear(x, 64) : x, b.binary("mul", m, m))));
    const Matches found = rule("pointwise").match(b.g);
    const auto& groups = body<PointwiseBody>(found.patterns.back()).groups;
    return groups.front().dag.to_string();
  };
  EXPECT_THAT(text(DType::bfloat16, true), HasSubstr("round_bfloat16(mul("));
  EXPECT_THAT(text(DType::float16, true), HasSubstr("round_float16(mul("));
  EXPECT_THAT(text(DType::bfloat16, false), Not(HasSubstr("round")));
  EXPECT_THAT(text(DType::float32, true), Not(HasSubstr("round")));
}

}  // namespace
}  // namespace tessera::rules
