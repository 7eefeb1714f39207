#include "kernel/winner.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera::kernel {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Winner synthesized() {
  Winner w;
  w.candidate = {.realizer = "tile_gemm", .config = {{"tile", {64, 128}}, {"stages", 4}}};
  w.candidate.source = toolchain::Source{.name = "k",
                                         .language = toolchain::Language::cxx,
                                         .text = "int x;",
                                         .arch = "host",
                                         .flags = {"-O3"},
                                         .links = {"m"}};
  w.candidate.unread = {3};
  w.candidate.launches = {{.knobs = {{"raster", "m"}}, .ints = {1}},
                          {.knobs = {{"raster", "n"}}, .ints = {2}}};
  w.launch = 1;
  w.built = toolchain::Built{.library = "/cache/kernel.so", .hash = "abc"};
  w.evidence = {.ms = 0.5, .ci95 = 0.01, .rms_error = 1e-7, .resources = {{"registers", 9}}};
  return w;
}

Winner library() {
  Winner w;
  w.candidate = {.realizer = "library_sdpa", .kind = Kind::library};
  w.candidate.call = LibraryCall{.function = "sdpa", .arguments = {{"backend", "cudnn"}}};
  w.evidence.ms = 0.25;
  w.evidence.unreliable = true;
  return w;
}

TEST(Winner, ComesBackAsItWasStoredWithTheLaunchThatWon) {
  const Json stored = to_json(synthesized());
  const auto back = winner_from_json(parse_json(stored.dump()));
  ASSERT_TRUE(back) << to_text(back.error());
  EXPECT_EQ(to_json(*back).dump(), stored.dump());
  ASSERT_EQ(back->candidate.launches.size(), 1u);
  EXPECT_EQ(back->launched().ints, std::vector<int64_t>{2});
  EXPECT_EQ(back->candidate.unread, std::vector<int>{3});
  EXPECT_EQ(back->binary, "abc");
  EXPECT_FALSE(back->built);
  EXPECT_TRUE(back->candidate.can_run());
  const Json call = to_json(library());
  EXPECT_EQ(to_json(*winner_from_json(call)).dump(), call.dump());
}

TEST(Winner, OfASourceThatIsAnotherItsConfigurationStays) {
  Json stored = to_json(synthesized());
  stored["candidate"]["source"]["flags"] = {"-fplugin=evil.so"};
  const auto back = winner_from_json(stored);
  ASSERT_TRUE(back);
  EXPECT_FALSE(back->candidate.can_run());
  EXPECT_EQ(back->candidate.config["stages"], 4);
  EXPECT_THAT(to_json(*back).dump(), Not(HasSubstr("evil")));
  stored["candidate"].erase("source_hash");  // an entry that nobody signed
  EXPECT_FALSE(winner_from_json(stored)->candidate.can_run());
  stored["candidate"]["source"].erase("flags");
  EXPECT_FALSE(winner_from_json(stored)->candidate.can_run());
}

TEST(Winner, WithoutARealizerItIsNone) {
  for (const char* text : {"7", "{}", R"({"candidate": {}})", R"({"candidate": []})"}) {
    const auto back = winner_from_json(parse_json(text));
    ASSERT_FALSE(back) << text;
    EXPECT_EQ(back.error().code, "TS0610") << text;
  }
}

TEST(Winner, TravelsWithoutWhatCouldRun) {
  const Json sent = portable(synthesized());
  EXPECT_THAT(sent.dump(), Not(HasSubstr("int x")));
  const Winner back = winner_from_portable(sent);
  EXPECT_FALSE(back.candidate.can_run());
  EXPECT_TRUE(back.is_of(synthesized().candidate));
  EXPECT_EQ(back.launched().knobs["raster"], "n");
  EXPECT_EQ(portable(back).dump(), sent.dump());
}

TEST(Winner, TheWireNamesTheLibraryOrTheCall) {
  const Json kernel = wire_form(synthesized());
  EXPECT_EQ(kernel["library"], "/cache/kernel.so");
  EXPECT_EQ(kernel["launch"]["ints"], Json::array({2}));
  EXPECT_EQ(kernel["label"], "tile_gemm 64x128");
  const Json call = wire_form(library());
  EXPECT_EQ(call["call"]["arguments"]["backend"], "cudnn");
  EXPECT_FALSE(call.contains("launch"));
}

TEST(Winner, IsOfACandidateInWhateverOrderItsConfigurationIs) {
  Candidate c{.realizer = "tile_gemm", .config = {{"stages", 4}, {"tile", {64, 128}}}};
  EXPECT_TRUE(synthesized().is_of(c));
  c.config["stages"] = 3;
  EXPECT_FALSE(synthesized().is_of(c));
}

TEST(Evidence, KeepsWhatJsonHasNoNumberFor) {
  Evidence e{.ms = 1, .baseline_max_error = INFINITY};
  const Json once = parse_json(to_json(e).dump());
  EXPECT_EQ(to_json(evidence_from_json(once)).dump(), once.dump());
  EXPECT_TRUE(std::isnan(evidence_from_json(once).baseline_max_error));
}

TEST(Evidence, OfFewerFieldsHasNoughts) {
  const Evidence e = evidence_from_json({{"ms", 0.5}});
  EXPECT_EQ(e.ms, 0.5);
  EXPECT_EQ(e.sustained_ms, 0);
  EXPECT_FALSE(e.unreliable);
  EXPECT_FALSE(to_json(e).contains("resources"));
}

}  // namespace
}  // namespace tessera::kernel
