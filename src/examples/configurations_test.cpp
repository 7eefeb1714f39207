#include "examples/configurations.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/source_folder.h"

namespace tessera::examples {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Configurations, ThoseThatComeWithTesseraAreRead) {
  const Configurations c = measured(fs::path(source_folder()) / "knowledge" / "configurations");
  EXPECT_TRUE(c.notes.empty());
  ASSERT_FALSE(c.known.empty());
  for (const Known& k : c.known) {
    EXPECT_EQ(k.config.at("tile").size(), 3) << k.origin;
    EXPECT_GT(k.ms, 0) << k.origin;
    EXPECT_EQ(k.name().size(), 12);
  }
}

TEST(Configurations, ABadFileIsANoteAndLosesNoOther) {
  const fs::path folder = fs::path(testing::TempDir()) / "configurations";
  fs::create_directories(folder);
  std::ofstream(folder / "a.json") << "{";
  std::ofstream(folder / "b.json") << R"({"configurations": [{"rule": "gemm"}]})";
  std::ofstream(folder / "c.json")
      << R"({"configurations": [{"rule": "gemm", "precision": "bf16", "arch": "sm_90a",
         "device": "one", "summary": "", "realizer": "mine", "config": {}, "knobs": {},
         "extents": {}, "ms": 1, "origin": ""}]})";
  const Configurations c = measured(folder);
  EXPECT_EQ(c.known.size(), 1);
  EXPECT_THAT(c.notes, ElementsAre(HasSubstr("a.json is not a list"), HasSubstr("b.json is not")));
  fs::remove_all(folder);
  EXPECT_THAT(measured(folder).notes, ElementsAre(HasSubstr("TESSERA_KNOWLEDGE")));
}

registry::Entry entry(kernel::Kind kind) {
  registry::Entry e;
  e.key = {.signature = "a pattern", .precision = "bf16", .device = "one", .policy = ""};
  e.rule = "gemm";
  e.arch = "sm_90a";
  e.shape = {{"m", 64}};
  kernel::Winner w;
  w.candidate.realizer = "mine";
  w.candidate.kind = kind;
  w.candidate.config = {{"tile", 8}};
  w.candidate.launches = {{.knobs = {{"raster", "m"}}, .ints = {}}};
  w.evidence.ms = 0.5;
  e.winners = {w};
  return e;
}

TEST(Configurations, OwnWinnersThatTesseraWroteAreLearned) {
  registry::Entry imported = entry(kernel::Kind::synthesized);
  imported.provenance.imported = true;
  const std::vector<Known> got =
      learned({entry(kernel::Kind::synthesized), entry(kernel::Kind::library), imported, {}});
  ASSERT_EQ(got.size(), 1);
  EXPECT_EQ(got[0].realizer, "mine");
  EXPECT_EQ(got[0].knobs, Json({{"raster", "m"}}));
  EXPECT_EQ(got[0].extents, Json({{"m", 64}}));
  EXPECT_THAT(got[0].origin, HasSubstr("registry, entry "));
}

}  // namespace
}  // namespace tessera::examples
