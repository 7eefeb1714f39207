// What the rule takes, and what it refuses with which reason. That bodies mean what their nodes
// compute is tested against PyTorch in python/tests/test_rules.py.
#include "rules/gated_mlp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rules/common/testing.h"

namespace tessera::rules {
namespace {

using namespace testing;

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

}  // namespace
}  // namespace tessera::rules
