// Gated MLPs: one kernel that reads both weights, and the form of two launches.
#include <gmock/gmock.h>
#include <set>

#include "base/thorough.h"
#include "realize/realize.h"
#include "realize/testing/compile.h"
#include "realize/testing/problem_json.h"
#include "rules/gated_mlp.h"

namespace tessera::realize {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Result<Space> space_of(std::string_view name, const rules::Pattern& pattern) {
  for (const Realizer* r : all()) {
    if (r->name == name) return r->realize(pattern, graph::Graph{}, **arch::find("sm_90a"));
  }
  return error(fail(Code{"TS0900", "test"}, "no realizer {}", name));
}

rules::Pattern gated(const char* problem) {
  return testing::pattern_of(parse_json(problem));
}

constexpr const char* llama = R"({"m":2048,"n":14336,"k":4096,"epilogue":"gated_silu"})";

TEST(GatedInTwo, ReadsTheFirstProductAsTheSourceOfTheSecond) {
  const auto s = space_of("cutlass_gated", gated(llama));
  ASSERT_TRUE(s) << to_text(s.error());
  const Candidate& c = s->candidates.front();
  EXPECT_THAT(c.source->text, HasSubstr("namespace value {"));
  EXPECT_THAT(c.source->text, HasSubstr("tsb_silu"));
  EXPECT_EQ(c.launches.front().ints.front(), 2048LL * 14336 * 2);  // scratch bytes
}

TEST(GatedInOne, ReadsBothWeightsThroughOneViewAndKeepsNoIntermediate) {
  const auto s = space_of("cutlass_gated_fused", gated(llama));
  ASSERT_TRUE(s) << to_text(s.error());
  const Candidate& c = s->candidates.front();
  EXPECT_THAT(c.source->text, HasSubstr("tessera::PairedMainloop<"));
  EXPECT_THAT(c.source->text, HasSubstr("fusion::Sm90EVT"));
  EXPECT_THAT(c.source->text, Not(HasSubstr("$")));
  const auto& ints = c.launches.front().ints;
  EXPECT_EQ(ints[0], 0);              // no scratch
  EXPECT_EQ(ints[1 + 1], 14336);      // columns of the result, not of both products
  EXPECT_EQ(ints[1 + 12], 1);         // b: the gate's weight
  EXPECT_EQ(ints[1 + 20], 2);         // x1: the value's
  EXPECT_EQ(ints[1 + 20 + 2], 4096);  // its leading stride
  bool wide = false;
  for (const Candidate& x : s->candidates) {
    EXPECT_EQ(x.config["scheduler"], "persistent");
    EXPECT_EQ(int(x.config["tile"][1]) % 64, 0);
    wide |= x.config["tile"] == Json({128, 256, 64}) && x.config["schedule"] == "cooperative";
  }
  EXPECT_TRUE(wide);
}

// Half a swizzle row of each weight was multiplied with the other one's rows on the GPU.
TEST(GatedInOne, HalvesOfWeightsAlongNFillSwizzleRows) {
  const auto s =
      space_of("cutlass_gated_fused",
               gated(R"({"m":2048,"n":14336,"k":4096,"b_major":"n","epilogue":"gated_silu"})"));
  ASSERT_TRUE(s) << to_text(s.error());
  for (const Candidate& c : s->candidates) EXPECT_EQ(int(c.config["tile"][1]) % 128, 0);
}

// 14336 columns are 90 tiles of 160 (128x320 with both products): squares of 8 x 8 or 4 x 4
// clusters would reach beyond them and take a twelfth round of the machine.
TEST(GatedInOne, RastersReachNoRoundBeyondTheResult) {
  const auto s = space_of("cutlass_gated_fused", gated(llama));
  ASSERT_TRUE(s) << to_text(s.error());
  int seen = 0;
  for (const Candidate& c : s->candidates) {
    std::set<int> swizzles;
    for (const Launch& l : c.launches) swizzles.insert(int(l.knobs["swizzle"]));
    if (c.config["tile"] == Json({128, 320, 64}) && c.config["cluster"] == Json({2, 1})) {
      EXPECT_EQ(swizzles, (std::set<int>{1, 2}));
      ++seen;
    }
    if (c.config["tile"] == Json({128, 256, 64}) && c.config["cluster"] == Json({2, 1})) {
      EXPECT_EQ(swizzles, (std::set<int>{1, 2, 4, 8}));
      ++seen;
    }
  }
  EXPECT_EQ(seen, 2);
}

TEST(GatedInOne, TheHalvesOfOneWeightAreApartByTheirRows) {
  rules::Pattern p = gated(llama);
  auto body =
      std::make_shared<rules::GatedMlpBody>(dynamic_cast<const rules::GatedMlpBody&>(*p.body));
  body->b1 = body->b0;
  body->b1.offset = 14336LL * 4096;
  p.body = body;
  const auto s = space_of("cutlass_gated_fused", p);
  ASSERT_TRUE(s) << to_text(s.error());
  const auto& ints = s->candidates.front().launches.front().ints;
  EXPECT_EQ(ints[1 + 20], 1);
  EXPECT_EQ(ints[1 + 20 + 1], 14336LL * 4096);
}

TEST(GatedInOne, StoresTheGateAsWell) {
  const auto s = space_of("cutlass_gated_fused",
                          gated(R"({"m":2048,"n":14336,"k":4096,"epilogue":"gated_silu_saved"})"));
  ASSERT_TRUE(s) << to_text(s.error());
  const Candidate& c = s->candidates.front();
  EXPECT_THAT(c.source->text, HasSubstr("cute::seq<>, cute::seq<>, cute::seq<0, 1>, cute::seq<2>, "
                                        "cute::seq<0, 1>"));
  EXPECT_EQ(c.launches.front().ints[1 + 24], 4);  // d1: the second result's tensor
}

TEST(GatedInOne, SaysWhyItCannot) {
  rules::Pattern p = gated(llama);
  auto body =
      std::make_shared<rules::GatedMlpBody>(dynamic_cast<const rules::GatedMlpBody&>(*p.body));
  body->b1.strides = {0, 1, 14336};  // along n
  p.body = body;
  const auto s = space_of("cutlass_gated_fused", p);
  ASSERT_FALSE(s);
  EXPECT_THAT(s.error().message, HasSubstr("lie differently"));
  EXPECT_THAT(to_text(s.error()), HasSubstr("one type, order and leading stride"));
}

TEST(GatedInOne, EveryElementIsWrittenOnceFromItsTwoAccumulators) {
  if (!thorough()) GTEST_SKIP() << "a minute of nvcc: ./dev test all";
  testing::expect_runs_on_host("gated_layouts.cu");
}

TEST(GatedInOne, CompilesForHopperWithoutSpills) {
  if (!thorough()) GTEST_SKIP() << "a minute of nvcc: ./dev test all";
  const auto s = space_of("cutlass_gated_fused", gated(llama));
  ASSERT_TRUE(s) << to_text(s.error());
  for (const Candidate& c : s->candidates) {
    if (c.config["tile"] != Json({128, 256, 64})) continue;
    testing::expect_compiles(*c.source);
    return;
  }
  FAIL() << "no tile of 128 x 256";
}

}  // namespace
}  // namespace tessera::realize
