#include "rules/common/flow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rules/common/testing.h"

namespace tessera::rules {
namespace {

using namespace testing;

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
