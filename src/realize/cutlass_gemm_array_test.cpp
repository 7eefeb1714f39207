#include <gmock/gmock.h>

#include "base/thorough.h"
#include "realize/realize.h"
#include "realize/testing/compile.h"
#include "realize/testing/problem_json.h"

namespace tessera::realize {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Result<Space> space_of(const char* problem) {
  for (const Realizer* r : all()) {
    if (r->name != "cutlass_gemm_array") continue;
    return r->realize(testing::pattern_of(parse_json(problem)), graph::Graph{},
                      **arch::find("sm_90a"));
  }
  return error(fail(Code{"TS0900", "test"}, "no realizer"));
}

TEST(ArrayGemm, MakesItsPointersOnTheDevice) {
  const auto s = space_of(R"({"m":512,"n":1024,"k":2048,"batch":16,"epilogue":"bias_residual"})");
  ASSERT_TRUE(s) << to_text(s.error());
  const Candidate& c = s->candidates.front();
  const std::string& text = c.source->text;
  EXPECT_EQ(c.config["batches"], "pointers");
  EXPECT_THAT(text, Not(HasSubstr("TESSERA_SIDES_APART")));  // the kernel that fills is a template
  EXPECT_THAT(text, HasSubstr("KernelPtrArrayTmaWarpSpecialized"));
  EXPECT_THAT(text, HasSubstr("BatchesOf<4> all{"));                  // A, B, D and the residual
  EXPECT_THAT(text, HasSubstr("batches(24, 32, sizeof(ElementC))"));  // the second leaf
  EXPECT_EQ(c.launches.front().ints[1 + 28], 16);                     // one run of 16 batches
  EXPECT_THAT(text, HasSubstr("GemmUniversalMode::kArray"));
  EXPECT_THAT(text, Not(HasSubstr("$")));
  const auto plain = space_of(R"({"m":512,"n":1024,"k":2048,"batch":16})");
  EXPECT_THAT(plain->candidates.front().source->text, HasSubstr("BatchesOf<3> all{"));
}

/// Heads inside the rows: [batch, head, m, k] of [batch, m, head, k], no common stride.
TEST(ArrayGemm, TakesBatchesOfTwoStrides) {
  const rules::Pattern pattern = testing::pattern_of(
      parse_json(R"({"m":256,"n":128,"k":64,"batch":8,"heads":4,"epilogue":"bias_residual"})"));
  for (const Realizer* r : all()) {
    if (r->rule != "gemm") continue;
    const auto s = r->realize(pattern, graph::Graph{}, **arch::find("sm_90a"));
    EXPECT_EQ(s.has_value(), r->name == "cutlass_gemm_array" || r->name == "wgmma_gemm") << r->name;
    if (r->name != "cutlass_gemm_array") continue;
    const auto& ints = s->candidates.front().launches.front().ints;
    EXPECT_EQ(ints[1 + 3], 8);                   // batches
    EXPECT_EQ(ints[1 + 8 + 3], 64);              // from head to head of A
    EXPECT_EQ(ints[1 + 28], 4);                  // heads
    EXPECT_EQ(ints[1 + 28 + 1], 256 * 4 * 64);   // from batch to batch of A
    EXPECT_EQ(ints[1 + 28 + 4], 256 * 4 * 128);  // and of the residual
  }
}

TEST(ArrayGemm, SaysWhyItCannot) {
  const auto one = space_of(R"({"m":512,"n":1024,"k":2048})");
  ASSERT_FALSE(one);
  EXPECT_THAT(one.error().message, HasSubstr("one batch"));
  const auto several =
      space_of(R"({"m":512,"n":1024,"k":2048,"batch":4,"epilogue":"bias_silu_saved"})");
  ASSERT_FALSE(several);
  EXPECT_THAT(several.error().message, HasSubstr("2 results"));
}

TEST(ArrayGemm, CompilesForHopper) {
  if (!thorough()) GTEST_SKIP() << "a minute of nvcc: ./dev test all";
  const auto s = space_of(R"({"m":512,"n":1024,"k":2048,"batch":16,"epilogue":"bias_residual"})");
  ASSERT_TRUE(s) << to_text(s.error());
  // CUTLASS' own kernel keeps one pointer too many in its producer.
  testing::expect_compiles(*s->candidates.front().source, 16);
}

}  // namespace
}  // namespace tessera::realize
