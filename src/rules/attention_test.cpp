// What the rule takes, and what it refuses with which reason. That bodies mean what their nodes
// compute is tested against PyTorch in python/tests/test_rules.py.
#include "rules/attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rules/common/testing.h"

namespace tessera::rules {
namespace {

using namespace testing;

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

TEST(Attention, OnlyQueriesTakeInfinitiesAndNaN) {
  GraphBuilder b;
  const ValueId q = b.input("q", {2, 4, 8, 16}), k = b.input("k", {2, 4, 8, 16});
  b.output(b.sdpa(q, k, k, true));
  const Pattern p = rule("attention").match(b.g).patterns.at(0);
  ASSERT_EQ(p.roles.non_finite.size(), 1u);
  EXPECT_EQ(p.inputs.at(static_cast<std::size_t>(p.roles.non_finite[0].tensor)), q);
  EXPECT_EQ(p.roles.to_json().at("non_finite").at(0).at("shape"), Json(Shape{2, 4, 8, 16}));
}

TEST(Attention, NamesWhatStandsInTheWayOfANearMiss) {
  GraphBuilder b;
  const ValueId q = b.input("q", {4, 8, 16}), k = b.input("k", {4, 16, 8});
  const ValueId capped =
      b.unary("sin", b.call("aten.bmm.default", {{"self", q}, {"mat2", k}}, {4, 8, 8}));
  const ValueId weights =
      b.call("aten.softmax.int", {{"self", capped}, {"dim", int64_t{-1}}}, {4, 8, 8});
  const ValueId v = b.input("v", {4, 8, 16});
  b.output(b.call("aten.bmm.default", {{"self", weights}, {"mat2", v}}, {4, 8, 16}));
  EXPECT_TRUE(rejected(rule("attention").near_misses(b.g), b.node(weights),
                       "`aten.sin` changes the scores"));
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

/// Scores capped at 50 and masked by what is added, as Gemma 2 writes them.
TEST(Attention, TakesCappedScores) {
  GraphBuilder b;
  const ValueId q = b.input("q", {2, 4, 8, 16}), k = b.input("k", {2, 4, 16, 8});
  const ValueId v = b.input("v", {2, 4, 8, 16}), mask = b.input("mask", {1, 1, 8, 8});
  b.g.value(mask).facts = {
      {"additive_band", true}, {"lower", -3}, {"upper", 0}, {"masked", "-inf"}};
  const auto times = [&](ValueId x, double by) {
    return b.call("aten.mul.Tensor", {{"self", x}, {"other", by}}, b.type(x).shape);
  };
  const ValueId product = b.call("aten.matmul.default", {{"self", q}, {"other", k}}, {2, 4, 8, 8});
  const ValueId capped = times(b.unary("tanh", times(times(product, 0.25), 0.02)), 50);
  const ValueId weights =
      b.call("aten.softmax.int", {{"self", b.binary("add", capped, mask)}, {"dim", int64_t{-1}}},
             {2, 4, 8, 8});
  b.output(b.call("aten.matmul.default", {{"self", weights}, {"other", v}}, {2, 4, 8, 16}));
  const Matches m = rule("attention").match(b.g);
  ASSERT_EQ(m.patterns.size(), 1u);
  const auto& body = dynamic_cast<const AttentionBody&>(*m.patterns[0].body);
  EXPECT_DOUBLE_EQ(body.softcap, 50);
  EXPECT_DOUBLE_EQ(body.scale, 0.25);
  EXPECT_EQ(body.k.strides, (Shape{4 * 16 * 8, 16 * 8, 1, 8})) << "the product's right side";
  ASSERT_TRUE(body.band);
  EXPECT_EQ(body.band->text(), "band -3..0");
  EXPECT_EQ(m.patterns[0].computing.size(), 8u);
  EXPECT_TRUE(rule("attention").near_misses(b.g).empty());
}

/// The body of attention of 8 queries and so many keys under a mask of such content.
AttentionBody masked(const Json& facts, DType type = DType::boolean, int64_t keys = 8) {
  GraphBuilder b;
  const ValueId q = b.input("q", {2, 4, 8, 16}), k = b.input("k", {2, 4, keys, 16});
  const ValueId mask = b.input("mask", {1, 1, 8, keys}, type);
  b.g.value(mask).facts = facts;
  b.output(b.sdpa(q, k, k, false, false, mask));
  const Pattern p = rule("attention").match(b.g).patterns.at(0);
  return dynamic_cast<const AttentionBody&>(*p.body);
}

TEST(Attention, MasksOfKnownContentAreBands) {
  const Json window = {{"band", true}, {"lower", -3}, {"upper", 0}};
  const AttentionBody body = masked(window);
  ASSERT_TRUE(body.band && body.mask);
  EXPECT_EQ(body.band->text(), "band -3..0");
  EXPECT_EQ(body.band->keys_of(5, 8), (std::pair<int64_t, int64_t>(2, 6)));
  EXPECT_DOUBLE_EQ(seen_share(body), (1 + 2 + 3 + 5 * 4) / 64.0);
  // A part of a prompt behind what a cache holds.
  const AttentionBody later =
      masked({{"lower_triangular", true}, {"diagonal", 4}}, DType::boolean, 12);
  ASSERT_TRUE(later.band);
  EXPECT_EQ(later.band->keys_of(0, 12), (std::pair<int64_t, int64_t>(0, 5)));
  EXPECT_EQ(masked({{"upper_triangular", true}, {"diagonal", -2}}).band->text(), "band -2..");
  Json added = {{"additive_band", true}, {"lower", -3}, {"upper", 0}, {"masked", -1e9}};
  EXPECT_TRUE(masked(added, DType::float32).band);
  added["masked"] = "-inf";
  EXPECT_TRUE(masked(added, DType::float32).band);
}

/// Of each batch, for all heads: strides of 0 where dimensions are broadcast.
TEST(Attention, MasksAreReadAsTheyAreBroadcast) {
  const AttentionBody body = masked(Json::object());
  ASSERT_TRUE(body.mask && !body.band);
  EXPECT_EQ(body.mask->dtype, DType::boolean);
  EXPECT_EQ(body.mask->shape, (Shape{2, 4, 8, 8}));
  EXPECT_EQ(body.mask->strides, (Shape{0, 0, 8, 1}));
}

TEST(Attention, WhatIsNoBandStaysAMask) {
  const Json window = {{"band", true}, {"lower", -3}, {"upper", 0}};
  EXPECT_FALSE(masked(Json::object()).band);
  EXPECT_FALSE(masked(window, DType::float32).band) << "ones are added to scores";
  EXPECT_FALSE(masked({{"outside_band", true}, {"lower", -3}, {"upper", 0}}).band);
  EXPECT_FALSE(masked({{"band", true}, {"lower", -3}, {"upper", -1}}).band)
      << "the first query sees nothing";
  EXPECT_FALSE(masked({{"upper_triangular", true}, {"diagonal", 1}}).band)
      << "the last query sees nothing";
  EXPECT_FALSE(masked({{"additive_band", true}, {"lower", -3}, {"upper", 0}, {"masked", -1.0}},
                      DType::float32)
                   .band)
      << "a small number hides nothing";
}

}  // namespace
}  // namespace tessera::rules
