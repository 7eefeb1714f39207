#include <gtest/gtest.h>

#include "base/thorough.h"
#include "realize/common/tile_gemm_kernel.h"
#include "realize/common/tile_parts_text.h"
#include "realize/realize.h"
#include "realize/testing/compile.h"
#include "realize/testing/problem_json.h"

namespace tessera::realize {
namespace {

GemmProblem problem_of(const char* text) {
  const rules::Pattern pattern = testing::pattern_of(parse_json(text));
  const auto* body = dynamic_cast<const rules::GemmBody*>(pattern.body.get());
  auto p = parted_problem(*body, pattern.precision);
  EXPECT_TRUE(p) << to_text(p.error());
  return *p;
}

Result<Space> space_of(const char* problem) {
  for (const Realizer* r : all())
    if (r->name == "tile_gemm")
      return r->realize(testing::pattern_of(parse_json(problem)), graph::Graph{},
                        **arch::find("sm_90a"));
  ADD_FAILURE() << "no realizer";
  return Space{};
}

constexpr const char* rotary =
    R"({"m":128,"n":384,"k":64,"epilogue":"rotary","rotated":256,"head_dim":128})";
constexpr const char* llama =
    R"({"m":2048,"n":6144,"k":4096,"epilogue":"rotary","rotated":5120,"head_dim":128})";
/// With a bias before, and tables that begin anew.
constexpr const char* biased =
    R"({"m":384,"n":512,"k":72,"epilogue":"bias_rotary","head_dim":64,"positions":128})";

TEST(TileParts, ColumnsOfAPairAreOneFunction) {
  const auto text = parts_function(problem_of(rotary), 128);
  ASSERT_TRUE(text) << to_text(text.error());
  EXPECT_EQ(*text, R"(

def turned(
    low,
    high,
    batch,
    m,
    left,
    right,
    half,
    P0_0_STRIDE: index(multiple=8, at_least=0, below=1 << 31),
    P0_0: Tensor[bf16, "M", 64, strides("P0_0_STRIDE", 1)],
    P0_1_STRIDE: index(multiple=8, at_least=0, below=1 << 31),
    P0_1: Tensor[bf16, "M", 64, strides("P0_1_STRIDE", 1)],
    P0_2_STRIDE: index(multiple=8, at_least=0, below=1 << 31),
    P0_2: Tensor[bf16, "M", 64, strides("P0_2_STRIDE", 1)],
    P0_3_STRIDE: index(multiple=8, at_least=0, below=1 << 31),
    P0_3: Tensor[bf16, "M", 64, strides("P0_3_STRIDE", 1)],
):
    x = registers(f32, low.shape)
    x[:] = low
    y = registers(f32, high.shape)
    y[:] = high
    if left.start < 256:
        p0_0 = load(P0_0[m, half], like=low)
        p0_1 = load(P0_1[m, half], like=low)
        p0_2 = load(P0_2[m, half], like=low)
        p0_3 = load(P0_3[m, half], like=low)
        x[:] = ((x * p0_0) + (neg(high) * p0_1))
        y[:] = ((y * p0_2) + (low * p0_3))
    return [x, y]
)");
}

TEST(TileParts, TheMeaningIsThePatterns) {
  EXPECT_EQ(parts_meaning(problem_of(rotary)),
            "C[i, j] = (((sum(A[i, k] * B[j, k], k) * P0_0[i, j % 64]) + "
            "(neg(sum(A[i, k] * B[j + 64, k], k)) * P0_1[i, j % 64])) if j % 128 < 64 else "
            "((sum(A[i, k] * B[j, k], k) * P0_2[i, j % 64]) + "
            "(sum(A[i, k] * B[j - 64, k], k) * P0_3[i, j % 64]))) if j < 256 else "
            "sum(A[i, k] * B[j, k], k)");
}

TEST(TileParts, TilesLieInOnePartAndHoldWholeGroups) {
  const auto s = space_of(llama);
  ASSERT_TRUE(s) << to_text(s.error());
  ASSERT_GT(s->candidates.size(), 4U);
  for (const Candidate& c : s->candidates) {
    EXPECT_EQ(c.config["columns"], "parts");
    EXPECT_EQ(5120 % c.config["tile"][1].get<int>(), 0);
    EXPECT_EQ(c.config["tile"][1].get<int>() % 128, 0);
  }
}

TEST(TileParts, EveryCandidateIsProved) {
  const bool all = thorough();
  const char* problems[] = {
      biased, llama, R"({"m":519,"n":384,"k":136,"epilogue":"scaled_rotary","rotated":256})",
      R"({"m":65,"n":256,"k":136,"epilogue":"rotary","rotated":256,"head_dim":128})",
      R"({"m":132,"n":384,"k":72,"dtype":"float32","precision":"tf32","epilogue":"rotary",
          "rotated":256})"};
  for (std::size_t which = 0; which < (all ? std::size(problems) : 2); ++which) {
    const auto s = space_of(problems[which]);
    ASSERT_TRUE(s) << problems[which] << " " << to_text(s.error());
    for (std::size_t i = which; i < (all ? s->candidates.size() : which + 1); ++i) {
      const Candidate& c = s->candidates[i];
      const auto proof = c.source->prove();
      EXPECT_TRUE(proof) << problems[which] << " " << c.label() << " " << to_text(proof.error());
    }
  }
}

TEST(TileParts, SaysWhatItLeavesToOthers) {
  for (const char* problem :
       {R"({"m":512,"n":512,"k":512,"epilogue":"rotary","rotated":384,"head_dim":80})",
        R"({"m":390,"n":512,"k":72,"epilogue":"rotary","rotated":256,"positions":130})",
        R"({"m":384,"n":512,"k":72,"epilogue":"bias_rotary","rotated":256})"}) {
    const auto s = space_of(problem);
    ASSERT_FALSE(s) << problem;
    EXPECT_EQ(s.error().code, "TS0410") << problem;
  }
}

TEST(TileParts, Compiles) {
  const auto s = space_of(llama);
  ASSERT_TRUE(s) << to_text(s.error());
  testing::expect_compiles(*s->candidates.front().source);
}

}  // namespace
}  // namespace tessera::realize
