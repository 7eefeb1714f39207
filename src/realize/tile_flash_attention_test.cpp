// Attention in the kernel language: what it refuses, and that what it offers is proved.
#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/thorough.h"
#include "realize/realize.h"
#include "realize/testing/compile.h"
#include "realize/testing/problem_json.h"

namespace tessera::realize {
namespace {

using ::testing::HasSubstr;

Result<Space> space_of(const Json& instead = Json::object(), std::string_view arch = "sm_90a") {
  Json problem = parse_json(R"({"rule":"attention","heads":32,"kv_heads":8,"queries":2048,
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
  EXPECT_THAT(refusal({{"keys", 4096}}), HasSubstr("a causal mask of 2048 queries and 4096 keys"));
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

/// A constant of the kernel's file, as its text names it.
std::string constant(const Space& s, const std::string& name) {
  const std::string& text = s.candidates.front().source->text;
  const std::size_t at = text.find("//   " + name + " = ");
  return at == std::string::npos
             ? ""
             : text.substr(at + 8 + name.size(), text.find('\n', at) - at - 8 - name.size());
}

TEST(TileFlashAttention, WindowsAreThoseOfTheBand) {
  struct Case {
    Json instead;
    std::string causal, left, right;
  };
  const Json band = {{"causal", false}};
  const auto with = [&](Json more) {
    more.update(band);
    return more;
  };
  std::vector<Case> cases = {
      {with({{"band", {-255, 16}}}), "0", "255", "16"},
      // The pattern's diagonal begins at the first key, the kernel's ends at the last.
      {with({{"keys", 2112}, {"band", {-255, 64}}}), "1", "319", "-1"},
  };
  if (std::getenv("TESSERA_TEST_ALL") != nullptr)
    cases.insert(cases.end(), {{Json::object(), "1", "-1", "-1"},
                               {with({{"band", {-255, 0}}}), "1", "255", "-1"},
                               {with({{"band", {-4095, 0}}}), "1", "-1", "-1"},  // cuts nothing
                               {with({{"band", {-8, 4095}}}), "0", "8", "-1"},
                               {{{"keys", 512}}, "0", "-1", "1536"}});
  for (const Case& c : cases) {
    const Result<Space> s = space_of(c.instead);
    ASSERT_TRUE(s) << c.instead.dump() << to_text(s.error());
    EXPECT_EQ(constant(*s, "CAUSAL"), c.causal) << c.instead.dump();
    EXPECT_EQ(constant(*s, "LEFT"), c.left) << c.instead.dump();
    EXPECT_EQ(constant(*s, "RIGHT"), c.right) << c.instead.dump();
  }
  EXPECT_THAT(refusal(with({{"band", {4, 16}}})), HasSubstr("band 4..16"));
  EXPECT_THAT(refusal(with({{"band", {-9, -2}}})), HasSubstr("band -9..-2"));
}

TEST(TileFlashAttention, MasksAreReadAsTheyLie) {
  const auto with = [](const char* type, Json strides, Json more = Json::object()) {
    more.update({{"causal", false}, {"mask", type}, {"mask_strides", std::move(strides)}});
    return more;
  };
  struct Case {
    Json instead;
    std::string mask, rows, multiple;
  };
  std::vector<Case> cases = {{with("bool", {2048, 0, 0, 1}), "1", "0", "2"}};
  if (std::getenv("TESSERA_TEST_ALL") != nullptr)
    cases.insert(cases.end(),
                 {{with("bfloat16", {0, 0, 2048, 1}), "2", "1", "2"},
                  {with("float32", {0, 0, 2047, 1}, {{"keys", 2047}}), "2", "1", "1"}});
  for (const Case& c : cases) {
    const Result<Space> s = space_of(c.instead);
    ASSERT_TRUE(s) << c.instead.dump() << to_text(s.error());
    EXPECT_EQ(constant(*s, "MASK"), c.mask) << c.instead.dump();
    EXPECT_EQ(constant(*s, "MASK_ROWS"), c.rows) << c.instead.dump();
    EXPECT_EQ(constant(*s, "MULTIPLE"), c.multiple) << c.instead.dump();
    EXPECT_TRUE(s->candidates.front().unread.empty());
  }
  EXPECT_THAT(refusal(with("float16", {0, 0, 2048, 1})), HasSubstr("a mask of float16"));
  EXPECT_THAT(refusal(with("bool", {0, 0, 1, 2048})), HasSubstr("a mask that threads cannot load"));
}

/// What Hugging Face gives where sequences are padded: of each batch, for all heads.
TEST(TileFlashAttention, MaskedKernelsAreProvedAndCompile) {
  for (const char* type : {"bool", "bfloat16"}) {
    if (type != std::string_view("bool") && !thorough()) continue;
    const Result<Space> s = space_of({{"batch", 2},
                                      {"causal", false},
                                      {"mask", type},
                                      {"mask_strides", {2048 * 2048, 0, 2048, 1}}});
    ASSERT_TRUE(s) << to_text(s.error());
    const Candidate& best = s->candidates.front();
    EXPECT_TRUE(best.source->prove());
    testing::expect_compiles(*best.source);
  }
}

/// Gemma 2's local layers.
TEST(TileFlashAttention, WindowsAndCapsAreProvedAndCompile) {
  const Result<Space> s = space_of({{"heads", 8},
                                    {"kv_heads", 4},
                                    {"head_dim", 256},
                                    {"queries", 8192},
                                    {"causal", false},
                                    {"band", {-4095, 0}},
                                    {"softcap", 50.0}});
  ASSERT_TRUE(s) << to_text(s.error());
  const Candidate& best = s->candidates.front();
  EXPECT_THAT(best.source->text, HasSubstr("tsb_tanh("));
  EXPECT_EQ(best.unread, std::vector<int>{4}) << "the mask";
  EXPECT_TRUE(best.source->prove());
  testing::expect_compiles(*best.source);
}

}  // namespace
}  // namespace tessera::realize
