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
      b.unary("tanh", b.call("aten.bmm.default", {{"self", q}, {"mat2", k}}, {4, 8, 8}));
  const ValueId weights =
      b.call("aten.softmax.int", {{"self", capped}, {"dim", int64_t{-1}}}, {4, 8, 8});
  const ValueId v = b.input("v", {4, 8, 16});
  b.output(b.call("aten.bmm.default", {{"self", weights}, {"mat2", v}}, {4, 8, 16}));
  EXPECT_TRUE(rejected(rule("attention").near_misses(b.g), b.node(weights), "soft-capping"));
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

}  // namespace
}  // namespace tessera::rules
