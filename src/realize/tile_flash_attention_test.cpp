// Attention in the kernel language: what it refuses, and that what it offers is proved.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "realize/realize.h"
#include "realize/testing/compile.h"
#include "realize/testing/problem_json.h"

namespace tessera::realize {
namespace {

using ::testing::HasSubstr;

Result<Space> space_of(const Json& instead = Json::object(), std::string_view arch = "sm_90a") {
  Json problem = Json::parse(R"({"rule":"attention","heads":32,"kv_heads":8,"queries":2048,
                                 "head_dim":128,"causal":true})");
  problem.update(instead);
  for (const Realizer* r : all())
    if (r->name == "tile_flash_attention")
      return r->realize(testing::pattern_of(problem), graph::Graph{}, **arch::find(arch));
  return error(fail(Code{"TS0900", "test"}, "no realizer tile_flash_attention"));
}

std::string refusal(const Json& instead, std::string_view arch = "sm_90a") {
  const Result<Space> s = space_of(instead, arch);
  return s ? "" : to_text(s.error());
}

TEST(TileFlashAttention, RefusesWhatTheKernelDoesNotTake) {
  EXPECT_THAT(refusal({{"head_dim", 72}}), HasSubstr("head dims 72 and 72"));
  EXPECT_THAT(refusal({{"head_dim", 64}, {"value_dim", 128}}), HasSubstr("head dims 64 and 128"));
  EXPECT_THAT(refusal({{"head_dim", 288}}), HasSubstr("at most 256"));
  EXPECT_THAT(refusal({{"keys", 512}}), HasSubstr("a causal mask of 2048 queries and 512 keys"));
  EXPECT_THAT(refusal({{"dtype", "float32"}}), HasSubstr("float32 among the tensors"));
  EXPECT_THAT(refusal(Json::object(), "sm_80"), HasSubstr("no wgmma and TMA"));
}

TEST(TileFlashAttention, OffersWhatIsProvedAndCompiles) {
  const Result<Space> s = space_of();
  ASSERT_TRUE(s) << to_text(s.error());
  ASSERT_FALSE(s->candidates.empty());
  const Candidate& best = s->candidates.front();
  EXPECT_TRUE(best.source->prove());
  testing::expect_compiles(*best.source);
}

}  // namespace
}  // namespace tessera::realize
