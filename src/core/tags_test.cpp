// Tags in the core's text: what is written comes back, what is wrong is refused, and a kernel
// without them is what it would have been.
#include <gmock/gmock.h>

#include "core/parse.h"
#include "core/print.h"
#include "core/terms.h"
#include "core/testing/gemm.h"
#include "core/testing/same.h"
#include "core/verify.h"
#include "core/walk.h"

namespace tessera::core {
namespace {

using ::testing::HasSubstr;

const std::string head =
    "@kernel(threads=32, cluster=1, min_blocks=1, grid=1)\n"
    "def k(\n"
    "    M: Index[1, 4096],\n"
    "    X: Tensor[f32, (M, 8), (8, 1)],\n"
    "    Y: Tensor[f32, (M, 8), (8, 1), out],\n"
    "):\n";
const std::string body =
    "    s = shared(f32, \"(8,8):(8,1)\", swizzle=None, at=0)\n"
    "    tag(X[i, j], \"row\", i, over=[(i, M), (j, 8)])\n"
    "    tag(X[i, j], \"odd\", j % 2 ^ i & 1, over=[(i, M), (j, 8)])\n"
    "    v = registers(f32, [32, 4], \"(32,4):(1,32)\")\n"
    "    tag(v[e], \"row\", lane + e, over=[(e, 4)])\n"
    "    reset_tag(v[0], \"row\")\n"
    "    assert_tag(v[e], \"row\", lane + e, over=[(e, 4)])\n"
    "    assert_apart(v[1], \"row\", v[2])\n"
    "    assert_tag(s[a, b], \"row\", s[b, a], over=[(a, 8), (b, 8)])\n";

TEST(CoreTags, TextComesBack) {
  const Result<Kernel> k = parse("tags", head + body);
  ASSERT_TRUE(k) << to_text(k.error());
  EXPECT_EQ(to_string(*k), head + body);
  EXPECT_TRUE(has_tags(*k));
  for (const Diagnostic& d : verify(*k, **arch::find("sm_90a"))) ADD_FAILURE() << to_text(d);
  const Result<Kernel> again = parse("tags", to_string(*k));
  EXPECT_TRUE(testing::same(*k, *again));
  const Result<Kernel> other = parse(
      "tags", head + [] {
        std::string text = body;
        return text.replace(text.find("v[1]"), 4, "v[3]");
      }());
  EXPECT_FALSE(testing::same(*k, *other));
}

TEST(CoreTags, WhatIsWrongIsRefused) {
  const auto refused = [](const std::string& line) {
    const Result<Kernel> k =
        parse("tags", head + "    s = shared(f32, \"(8,8):(8,1)\", swizzle=None, at=0)\n" +
                          "    v = registers(f32, [32, 4], \"(32,4):(1,32)\")\n    " + line + "\n");
    if (!k) return k.error().message;
    const std::vector<Diagnostic> found = verify(*k, **arch::find("sm_90a"));
    return found.empty() ? std::string() : found.front().message;
  };
  EXPECT_EQ(refused("tag(v[0], \"row\", lane)"), "");
  EXPECT_EQ(refused("tag(Y[i, j], \"row\", i, over=[(i, M), (j, 8)])"),
            "`Y` cannot be tagged here");
  EXPECT_EQ(refused("tag(X[j, i], \"row\", i, over=[(i, M), (j, 8)])"),
            "the tags of `X` are not those of all its elements");
  EXPECT_EQ(refused("assert_tag(X[0, 0], \"row\", 0)"),
            "elements of `X` are looked at where they are loaded to");
  EXPECT_EQ(refused("assert_tag(v[e], \"row\", 0, over=[(e, 5)])"), "slots of `v` lie outside");
  EXPECT_EQ(refused("assert_tag(s[a, 0], \"row\", 0, over=[(a, 9)])"),
            "index 0 of `s` lies outside");
  EXPECT_EQ(refused("assert_tag(s[a, 0], \"row\", 0)"), "`a` is not defined here");
  EXPECT_EQ(refused("tag(v[0], \"not a name\", 0)"), "`not a name` is no name of a tag");
  EXPECT_THAT(refused("assert_tags(v[0], \"row\", 0)"), HasSubstr("the core has no `assert_tags`"));
}

TEST(CoreTags, AKernelWithoutThemIsWhatItWouldHaveBeen) {
  for (const bool direct : {false, true}) {
    core::testing::GemmShape s{.bn = 64, .stages = 2, .direct = direct};
    const Kernel plain = *core::testing::gemm(s);
    s.tagged = true;
    const Kernel tagged = *core::testing::gemm(s);
    EXPECT_FALSE(testing::same(plain, tagged));
    EXPECT_TRUE(testing::same(plain, without_tags(tagged)));
    EXPECT_FALSE(has_tags(without_tags(tagged)));
    const Kernel own = in_own_pool(without_tags(tagged));
    EXPECT_TRUE(testing::same(plain, own));
    EXPECT_NE(own.pool, tagged.pool);
    EXPECT_TRUE(verify(own, **arch::find("sm_90a")).empty());
  }
}

}  // namespace
}  // namespace tessera::core
