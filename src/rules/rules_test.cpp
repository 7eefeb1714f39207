// Each rule: what it takes, and what it refuses with which reason. That bodies mean what their
// nodes compute is tested against PyTorch in python/tests/test_rules.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rules/attention.h"
#include "rules/common/flow.h"
#include "rules/common/testing.h"
#include "rules/gated_mlp.h"
#include "rules/gemm.h"
#include "rules/pointwise.h"
#include "rules/row_norm.h"

namespace tessera::rules {
namespace {

using namespace testing;

template <class Body>
const Body& body(const Pattern& p) {
  return dynamic_cast<const Body&>(*p.body);
}

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

/// [rows, columns] of heads of 16 with their halves rotated, and the other columns of y.
ValueId rotated(GraphBuilder& b, ValueId y, int64_t columns) {
  const int64_t rows = b.type(y).shape[0];
  const Shape whole{rows, columns / 16, 16};
  const Shape halves{rows, columns / 16, 8};
  const int64_t n = b.type(y).shape[1];
  const ValueId x =
      b.call("aten.view.default", {{"self", b.slice(y, 1, 0, columns)}, {"size", ints(whole)}},
             whole, {n, 16, 1});
  const ValueId minus = b.call("aten.neg.default", {{"self", b.slice(x, 2, 8, 16)}}, halves, {});
  const ValueId across = b.cat({minus, b.slice(x, 2, 0, 8)}, 2);
  const auto times = [&](ValueId v, const char* table) {
    return b.call("aten.mul.Tensor", {{"self", v}, {"other", b.input(table, {rows, 1, 16})}},
                  whole);
  };
  const ValueId sum = b.binary("add", times(x, "cos"), times(across, "sin"));
  return b.view(sum, {rows, columns});
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

TEST(GatedMlp, FindsTheGateWhereverItStands) {
  for (const bool merged : {false, true}) {
    GraphBuilder b;
    const ValueId x = b.input("x", {16, 32});
    ValueId value, gate;
    if (merged) {
      const ValueId both = b.linear(x, 128, false);
      value = b.slice(both, 1, 0, 64);
      gate = b.slice(both, 1, 64, 128);
    } else {
      value = b.linear(x, 64, false);
      gate = b.linear(x, 64, false);
    }
    const ValueId act = b.call("aten.silu.default", {{"self", gate}}, {16, 64});
    b.output(b.call("aten.mul.Tensor", {{"self", value}, {"other", act}}, {16, 64}));
    const Matches m = rule("gated_mlp").match(b.g);
    ASSERT_EQ(m.patterns.size(), 1u) << merged;
    const auto& g = body<GatedMlpBody>(m.patterns[0]);
    EXPECT_EQ(g.epilogue.to_string(), "mul(%1, silu(%0))");
    EXPECT_EQ(g.n, 64);
    if (merged) {
      EXPECT_EQ(g.b0.offset, 64 * 32);
      EXPECT_EQ(g.b1.offset, 0);
      EXPECT_EQ(g.b0.tensor, g.b1.tensor);
    }
  }
}

TEST(GatedMlp, NotWithoutAGate) {
  GraphBuilder b;
  const ValueId x = b.input("x", {16, 32});
  b.output(b.binary("add", b.linear(x, 64), b.linear(x, 64)));
  EXPECT_TRUE(rule("gated_mlp").match(b.g).patterns.empty());

  GraphBuilder other;  // different inputs
  const ValueId p = other.linear(other.input("x", {16, 32}), 64);
  const ValueId q = other.linear(other.input("y", {16, 32}), 64);
  other.output(other.binary("mul", other.unary("silu", p), q));
  EXPECT_TRUE(rule("gated_mlp").match(other.g).patterns.empty());
}

TEST(Attention, RefusesDropoutAndUnsharedHeads) {
  GraphBuilder b;
  const ValueId q = b.input("q", {2, 4, 8, 16}), k = b.input("k", {2, 4, 8, 16}),
                v = b.input("v", {2, 4, 8, 16});
  const ValueId o = b.sdpa(q, k, v, false, false, graph::NoValue{}, 0.1);
  b.output(o);
  EXPECT_TRUE(rejected(rule("attention").match(b.g).rejections, b.node(o), "random"));

  GraphBuilder c;
  const ValueId k3 = c.input("k", {2, 3, 8, 16});
  const ValueId p = c.sdpa(c.input("q", {2, 4, 8, 16}), k3, k3, false, true);
  c.output(p);
  EXPECT_TRUE(rejected(rule("attention").match(c.g).rejections, c.node(p), "do not share"));
}

TEST(Attention, KeepsTheResultWhereTwoLayoutsAreNeeded) {
  GraphBuilder b;
  const ValueId q = b.input("q", {2, 4, 8, 16});
  const ValueId o = b.sdpa(q, q, q, true);
  b.output(o);
  b.output(b.gelu(b.view(b.contiguous(b.transpose(o, 1, 2)), {2, 8, 64})));
  const Matches m = rule("attention").match(b.g);
  ASSERT_EQ(m.patterns.size(), 1u);
  EXPECT_EQ(m.patterns[0].computing.size(), 1u);
  EXPECT_EQ(m.patterns[0].flops, 2.0 * 2 * 4 * 8 * 8 * 32 / 2);
}

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

TEST(Pointwise, RefusesReductionsItCannotExpress) {
  GraphBuilder b;
  const ValueId y =
      b.call("aten.argmax.default", {{"self", b.input("x", {8, 8})}, {"dim", int64_t{1}}}, {8}, {},
             DType::int64);
  b.output(y);
  EXPECT_TRUE(rejected(rule("pointwise").match(b.g).rejections, b.node(y), "not among sum"));
}

TEST(Flow, ConvexityFollowsPathsThroughViews) {
  GraphBuilder b;
  const ValueId x = b.input("x", {4, 4});
  const ValueId a = b.unary("exp", x);
  const ValueId mid = b.linear(b.transpose(a, 0, 1), 4);
  const ValueId c = b.binary("add", a, mid);
  b.output(c);
  const Flow flow(b.g);
  EXPECT_FALSE(flow.convex({b.node(a), b.node(c)}));
  EXPECT_TRUE(flow.convex({b.node(a), b.node(mid), b.node(c)}));
  EXPECT_TRUE(flow.convex({b.node(a), b.node(mid)}));
}

}  // namespace
}  // namespace tessera::rules
