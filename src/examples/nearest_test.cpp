#include "examples/nearest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera::examples {
namespace {

using Verdict = Grounding::Verdict;

Known product(const char* realizer, const char* precision, int64_t m, const Json& config,
              double ms = 1) {
  return {.rule = "gemm",
          .precision = precision,
          .arch = "sm_90a",
          .device = "one",
          .summary = "a product",
          .realizer = realizer,
          .config = config,
          .extents = {{"m", m}, {"n", 1024}},
          .ms = ms,
          .origin = "a test"};
}

const Json wide = {{"tile", {128, 256, 64}}, {"cluster", {2, 1}}};
const Json tall = {{"tile", {256, 128, 64}}, {"cluster", {1, 2}}};

Asked asked(const Json& config, int64_t m = 1024, const char* precision = "bf16") {
  return {.rule = "gemm",
          .precision = precision,
          .arch = "sm_90a",
          .realizer = "mine",
          .config = config,
          .extents = {{"m", m}, {"n", 1024}}};
}

const std::vector<Known>& known() {
  static const std::vector<Known> all = {product("mine", "bf16", 1024, wide),
                                         product("mine", "bf16", 8192, tall),
                                         product("other", "bf16", 1024, {{"stages", 3}})};
  return all;
}

TEST(Nearest, DoublingsOfExtentsOrderRelatives) {
  const auto near = nearest(asked({}, 6000), known());
  ASSERT_EQ(near.size(), 3);
  EXPECT_EQ(near[0]->config, tall);
  EXPECT_EQ(near[1]->config, wide);
  EXPECT_EQ(near[2]->realizer, "other");
}

TEST(Nearest, OfEqualsTheFasterIsFirst) {
  const std::vector<Known> two = {product("mine", "bf16", 1024, wide, 2),
                                  product("mine", "bf16", 1024, tall, 1)};
  EXPECT_EQ(nearest(asked({}), two).front()->ms, 1);
}

TEST(Nearest, AnotherRuleOrArchitectureIsNoRelative) {
  Asked other = asked(wide);
  other.arch = "sm_80";
  EXPECT_FALSE(distance(other, known()[0]).has_value());
  other = asked(wide);
  other.rule = "row_norm";
  EXPECT_TRUE(nearest(other, known()).empty());
}

TEST(Nearest, PrecisionsOfOneSizeAreNearerThanOthers) {
  const double none = *distance(asked(wide), known()[0]);
  const double same_size = *distance(asked(wide, 1024, "fp16"), known()[0]);
  const double other_size = *distance(asked(wide, 1024, "fp32"), known()[0]);
  const double eight_bits = *distance(asked(wide, 1024, "fp8"), known()[0]);
  EXPECT_LT(none, same_size);
  EXPECT_LT(same_size, other_size);
  EXPECT_EQ(other_size, eight_bits);
}

TEST(Ground, WhatIsKnownIsSaidSo) {
  Json with_stages = wide;
  with_stages["stages"] = 4;
  const Grounding g = ground(asked(with_stages), known());
  EXPECT_EQ(g.verdict, Verdict::known);
  EXPECT_TRUE(g.differences.empty());
  EXPECT_THAT(g.not_compared, testing::ElementsAre("stages"));
}

TEST(Ground, ValuesOfSeveralAreMixed) {
  const Grounding g = ground(asked({{"tile", {128, 256, 64}}, {"cluster", {1, 2}}}), known());
  EXPECT_EQ(g.verdict, Verdict::mixed);
  ASSERT_EQ(g.differences.size(), 1);
  EXPECT_EQ(g.differences[0].field, "cluster");
  EXPECT_TRUE(g.differences[0].elsewhere);
}

TEST(Ground, AValueOfNoneIsUnseen) {
  const Grounding g = ground(asked({{"tile", {128, 240, 64}}, {"cluster", {2, 1}}}), known());
  EXPECT_EQ(g.verdict, Verdict::unseen);
  ASSERT_EQ(g.differences.size(), 1);
  EXPECT_EQ(g.differences[0].known, Json({128, 256, 64}));
  EXPECT_FALSE(g.differences[0].elsewhere);
}

TEST(Ground, ARealizerOrPrecisionThatHasNoneIsAGap) {
  Asked other = asked({{"stages", 3}});
  other.realizer = "nobody's";
  EXPECT_EQ(ground(other, known()).verdict, Verdict::gap);
  EXPECT_TRUE(ground(other, known()).differences.empty());
  EXPECT_EQ(ground(asked(wide, 1024, "fp16"), known()).verdict, Verdict::gap);
  EXPECT_EQ(ground(asked(wide), {}).nearest, nullptr);
}

}  // namespace
}  // namespace tessera::examples
