#include <gtest/gtest.h>
#include <set>

#include "base/thorough.h"
#include "realize/realize.h"
#include "realize/testing/compile.h"
#include "realize/testing/problem_json.h"

namespace tessera::realize {
namespace {

Result<Space> space_of(const char* problem) {
  for (const Realizer* r : all()) {
    if (r->name != "tile_gated") continue;
    return r->realize(testing::pattern_of(parse_json(problem)), graph::Graph{},
                      **arch::find("sm_90a"));
  }
  ADD_FAILURE() << "no realizer";
  return Space{};
}

Space expect_space(const char* problem) {
  auto s = space_of(problem);
  EXPECT_TRUE(s) << to_text(s.error());
  return s ? std::move(*s) : Space{};
}

constexpr const char* llama = R"({"m":2048,"n":14336,"k":4096,"epilogue":"gated_silu"})";
constexpr const char* saved =
    R"({"m":520,"n":264,"k":136,"b_major":"n","epilogue":"gated_silu_saved"})";

TEST(TileGated, OffersTilesOfBothProducts) {
  const Space s = expect_space(llama);
  ASSERT_GT(s.candidates.size(), 8U);
  std::set<std::string> tiles;
  for (const Candidate& c : s.candidates) {
    EXPECT_EQ(c.config["products"], "paired");
    EXPECT_GT(c.predicted_ms, 0);
    EXPECT_EQ(c.launches.size(), 1U);
    tiles.insert(c.config["tile"].dump());
  }
  EXPECT_TRUE(tiles.contains("[128,256,64]"));
  EXPECT_TRUE(tiles.contains("[128,320,64]"));
}

TEST(TileGated, EveryCandidateIsProved) {
  const bool all = thorough();
  const char* problems[] = {
      saved, llama,
      R"({"m":260,"n":132,"k":100,"dtype":"float32","precision":"tf32","epilogue":"gated_silu"})"};
  for (std::size_t which = 0; which < (all ? std::size(problems) : 2); ++which) {
    const Space s = expect_space(problems[which]);
    for (std::size_t i = which; i < (all ? s.candidates.size() : which + 1); ++i) {
      const Candidate& c = s.candidates[i];
      const auto proof = c.source->prove();
      EXPECT_TRUE(proof) << problems[which] << " " << c.label() << " " << to_text(proof.error());
    }
  }
}

TEST(TileGated, SaysWhatItLeavesToOthers) {
  for (const char* problem :
       {R"({"m":512,"n":512,"k":512,"dtype":"float32","precision":"fp32","epilogue":"gated_silu"})",
        R"({"m":64,"n":64,"k":67,"epilogue":"gated_silu"})"}) {
    const auto s = space_of(problem);
    ASSERT_FALSE(s) << problem;
    EXPECT_EQ(s.error().code, "TS0410") << problem;
  }
}

TEST(TileGated, Compiles) {
  testing::expect_compiles(*expect_space(llama).candidates.front().source);
}

}  // namespace
}  // namespace tessera::realize
