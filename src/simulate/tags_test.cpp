// Tags in a run: they move with what is copied, meet in what is computed, and what is asserted of
// them holds in right kernels and fails in others.
#include "simulate/tags.h"

#include <gmock/gmock.h>

#include "simulate/testing/kit.h"
#include "simulate/testing/product.h"

namespace tessera::simulate {
namespace {

using testing::findings;
using ::testing::HasSubstr;
using testing::run;

core::Kernel product(int cluster = 1, bool rows = false) {
  return *core::testing::gemm({.bm = 64,
                               .bn = 64,
                               .bk = 32,
                               .stages = 2,
                               .cluster = cluster,
                               .b_rows = rows,
                               .tagged = true});
}

TEST(SimulateTags, JoinKeepsWhatIsShared) {
  Tags tags(2);
  const TagId a = tags.get({1, Tags::none}), b = tags.get({1, 5}), c = tags.get({2, 5});
  EXPECT_EQ(tags.join(a, 0), a);
  EXPECT_EQ(tags.join(a, b), b);
  EXPECT_EQ(tags.under(tags.join(b, c), 0), Tags::several);
  EXPECT_EQ(tags.under(tags.join(b, c), 1), 5);
  EXPECT_EQ(tags.join(tags.join(b, c), b), tags.join(b, c));
}

/// Also at the edge, where boxes leave their tensors.
TEST(SimulateTags, HoldInARightKernel) {
  for (const core::Kernel& k : {product(), product(2), product(1, true)})
    EXPECT_EQ(findings(run(k, testing::launch({72, 40, 40}), 3)), "");
}

TEST(SimulateTags, AnotherElementIsAFaultWithItsPlace) {
  core::Kernel k = product();
  ASSERT_TRUE(testing::edit(k, "tma.load", "", 1, [](core::Body& body, std::size_t i) {
    auto& at = std::get<core::Integers>(testing::issue_at(body, i).arguments[2]);
    at.values[0] = at.values[0] + 8;
  }));
  const Outcome o = run(k, testing::launch({64, 64, 64}));
  ASSERT_FALSE(o.findings.empty());
  const Diagnostic& d = o.findings.front();
  EXPECT_EQ(d.code, "TS0887");
  EXPECT_EQ(d.message, "an element carries another `k` than is asserted");
  EXPECT_THAT(d.expected, HasSubstr("the same as `b[0, 0, 0]`"));
  EXPECT_EQ(d.found, "0");
}

TEST(SimulateTags, WhatNothingTagsAgreesWithNothing) {
  core::Kernel k = product();
  std::erase_if(k.body, [](const core::Op& op) { return op.as<core::Tag>() != nullptr; });
  const Outcome o = run(k, testing::launch({64, 64, 64}));
  ASSERT_FALSE(o.findings.empty());
  EXPECT_EQ(o.findings.front().found, "nothing");
}

}  // namespace
}  // namespace tessera::simulate
