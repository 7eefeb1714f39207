// When an entry is a verdict, what is kept of searches, what a wrong winner leaves behind, and
// files of before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/hash.h"
#include "registry/tables.h"
#include "registry/wrong.h"
#include "store/journal.h"

namespace tessera::registry {
namespace {

using ::testing::HasSubstr;

Key key(const std::string& name = "gemm 64") {
  return {name, "bf16", "H200", measuring_policy()};
}

kernel::Winner winner(const std::string& realizer, double ms,
                      kernel::Kind kind = kernel::Kind::synthesized) {
  kernel::Winner w;
  w.candidate = {.realizer = realizer, .kind = kind, .config = {{"tile", {64}}}};
  w.evidence.ms = ms;
  return w;
}

Thoroughness searched(const std::string& effort, double allowed, const std::string& because) {
  return thoroughness_of({.asked = {.effort = effort, .seconds = allowed},
                          .seconds = allowed > 0 ? allowed : 9,
                          .because = because});
}

Entry entry(std::vector<kernel::Winner> winners,
            const std::string& created = "2026-01-01T00:00:00Z") {
  Entry e{.key = key(), .rule = "gemm", .arch = "sm_90a"};
  e.winners = std::move(winners);
  e.eager_ms = 2.0;
  e.toolchain = "nvcc13";
  e.created = created;
  e.shape = {{"m", 64}};
  e.libraries = {{"torch", "2.11.0"}, {"cudnn", "91002"}};
  e.search = searched("default", 0, "space exhausted");
  return e;
}

struct Body : rules::PatternBody {
  [[nodiscard]] Json to_json() const override { return {{"m", 64}}; }
};

rules::Pattern gemm() {
  rules::Pattern p;
  p.rule = "gemm";
  p.body = std::make_shared<Body>();
  return p;
}

class TrustTest : public ::testing::Test {
 protected:
  TemporaryFolder folder;
  std::unique_ptr<Registry> registry = open();
  std::unique_ptr<Registry> open() {
    auto r = Registry::open(folder.path() / "registry.sqlite");
    EXPECT_TRUE(r.has_value()) << to_text(r.error());
    return std::move(*r);
  }
  Here here{.toolchain = "nvcc13", .libraries = {{"torch", "2.11.0"}, {"cudnn", "91002"}}};
  Lookup look() {
    auto found = registry->lookup(key(), gemm(), here);
    EXPECT_TRUE(found.has_value());
    return *found;
  }
};

TEST_F(TrustTest, AShallowSearchIsNoVerdict) {
  Entry e = entry({winner("tile_gemm", 1)});
  e.search = searched("default", 10, "budget of 10 s");
  ASSERT_TRUE(registry->store(e));
  here.asked = {.effort = "default", .seconds = 10};
  EXPECT_EQ(look().reuse, rules::Reuse::reuse);
  here.asked = {.effort = "default", .seconds = 20};
  EXPECT_EQ(look().reuse, rules::Reuse::adapt);
  EXPECT_EQ(look().standing, Standing::shallow);
  EXPECT_EQ(look().entry->realizer(), "tile_gemm");  // where the search goes on
  EXPECT_THAT(look().detail, HasSubstr("cut at 10 s of default"));
  here.asked = {.effort = "max"};
  EXPECT_EQ(look().reuse, rules::Reuse::adapt);
}

TEST_F(TrustTest, ThatNothingPassedInAFewSecondsStopsNoLongerSearch) {
  Entry e = entry({});
  e.search = searched("default", 3, "budget of 3 s");
  ASSERT_EQ(e.status(), "failed");
  ASSERT_TRUE(registry->store(e));
  here.asked = {.effort = "default", .seconds = 3};
  EXPECT_EQ(look().reuse, rules::Reuse::reuse);
  here.asked = {.effort = "default", .seconds = 30};
  EXPECT_EQ(look().reuse, rules::Reuse::fresh);
  EXPECT_EQ(look().own->status(), "failed");
}

TEST_F(TrustTest, NoisyFiguresAreNoVerdict) {
  kernel::Winner noisy = winner("tile_gemm", 0.1);
  noisy.evidence.unreliable = true;
  ASSERT_TRUE(registry->store(entry({noisy})));
  EXPECT_EQ(look().reuse, rules::Reuse::adapt);
  EXPECT_EQ(look().standing, Standing::unreliable);
  // However small they are, they do not keep figures that can be relied on away.
  ASSERT_TRUE(registry->store(entry({winner("tile_gemm", 0.5)}, "2026-01-02T00:00:00Z")));
  EXPECT_EQ(look().reuse, rules::Reuse::reuse);
  ASSERT_TRUE(registry->store(entry({noisy}, "2026-01-03T00:00:00Z")));
  EXPECT_EQ(look().reuse, rules::Reuse::reuse);
}

TEST_F(TrustTest, OtherLibrariesAreNoVerdict) {
  ASSERT_TRUE(registry->store(entry({winner("library_sdpa", 1, kernel::Kind::library)})));
  EXPECT_EQ(look().reuse, rules::Reuse::reuse);
  here.libraries["cudnn"] = "91100";
  EXPECT_EQ(look().reuse, rules::Reuse::adapt);
  EXPECT_EQ(look().standing, Standing::other_libraries);
  EXPECT_THAT(look().detail, HasSubstr("cudnn 91002, here 91100"));
  // What was timed again under them takes the place, also where it is slower.
  Entry again = entry({winner("library_sdpa", 2, kernel::Kind::library)}, "2026-01-02T00:00:00Z");
  again.libraries = here.libraries;
  ASSERT_TRUE(registry->store(again));
  EXPECT_EQ(look().reuse, rules::Reuse::reuse);
  EXPECT_EQ(look().entry->winners.front().evidence.ms, 2.0);
}

TEST_F(TrustTest, ASearchThatHadTheOldBestBesideItsOwnReplacesIt) {
  ASSERT_TRUE(registry->store(entry({winner("tile_gemm", 0.50)})));
  Entry later = entry({winner("cutlass_gemm", 0.51)}, "2026-01-02T00:00:00Z");
  ASSERT_TRUE(registry->store(later));
  EXPECT_EQ(look().entry->realizer(), "tile_gemm");
  later.replaces = "2026-01-01T00:00:00Z";
  ASSERT_TRUE(registry->store(later));
  EXPECT_EQ(look().entry->realizer(), "cutlass_gemm");
}

TEST_F(TrustTest, TheLastWordOfARunStands) {
  Entry e = entry({winner("tile_gemm", 0.50)});
  e.run = "a";
  ASSERT_TRUE(registry->store(e));
  e = entry({winner("cutlass_gemm", 0.51)}, "2026-01-02T00:00:00Z");
  e.run = "b";
  ASSERT_TRUE(registry->store(e));
  EXPECT_EQ(look().entry->realizer(), "tile_gemm");
  e.run = "a";
  ASSERT_TRUE(registry->store(e));
  EXPECT_EQ(look().entry->realizer(), "cutlass_gemm");
}

TEST_F(TrustTest, ThoroughnessStaysWithTheKey) {
  Entry quick = entry({winner("tile_gemm", 0.5)});
  quick.search = searched("quick", 0, "budget of 16 builds");
  ASSERT_TRUE(registry->store(quick));
  EXPECT_EQ(look().reuse, rules::Reuse::adapt);
  // Found nothing better, but was as thorough as asked: the old winner is the answer from now on.
  ASSERT_TRUE(registry->store(entry({winner("cutlass_gemm", 0.6)}, "2026-01-02T00:00:00Z")));
  EXPECT_EQ(look().reuse, rules::Reuse::reuse);
  EXPECT_EQ(look().entry->realizer(), "tile_gemm");
}

Json trial(const std::string& realizer, int tile, double ms) {
  return {{"realizer", realizer},    {"kind", "synthesized"}, {"config", {{"tile", {tile}}}},
          {"knobs", Json::object()}, {"outcome", "measured"}, {"ms", ms}};
}

TEST_F(TrustTest, TrialsStayAfterTheSearchOnePerPoint) {
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(registry->note_trial(key(), "nvcc13", "c", trial("tile_gemm", i, i)));
  Json final = trial("tile_gemm", 1, 0.5);
  final["detail"] = {{"final", true}};
  ASSERT_TRUE(registry->note_trial(key(), "nvcc13", "c", final));
  ASSERT_TRUE(registry->note_trial(key(), "nvcc12", "c", trial("tile_gemm", 1, 7)));
  ASSERT_TRUE(registry->settle_trials(key(), "nvcc13"));
  registry.reset();
  registry = open();
  const Json kept = *registry->trials(key(), "nvcc13");
  ASSERT_EQ(kept.size(), 3u) << kept.dump(1);
  EXPECT_EQ(kept[2]["ms"], 0.5);  // in the order in which they were made
  EXPECT_EQ(kept[0]["label"], "c");
  EXPECT_EQ(registry->trials(key(), "nvcc12")->size(), 1u);  // of its own toolchain
  EXPECT_EQ(registry->trials(key("another"), "nvcc13")->size(), 0u);
}

TEST_F(TrustTest, TrialsAreBoundedAndGoWithTheirEntry) {
  for (int i = 0; i < most_trials + 40; ++i)
    ASSERT_TRUE(registry->note_trial(key(), "nvcc13", "c", trial("tile_gemm", i, 1)));
  ASSERT_TRUE(registry->settle_trials(key(), "nvcc13"));
  const Json kept = *registry->trials(key(), "nvcc13");
  EXPECT_EQ(kept.size(), static_cast<std::size_t>(most_trials));
  EXPECT_EQ(kept.back()["config"]["tile"][0], most_trials + 39);
  ASSERT_TRUE(registry->store(entry({winner("tile_gemm", 1)})));
  EXPECT_EQ(*registry->prune("hash:" + key().hash()), 1);
  EXPECT_EQ(registry->trials(key(), "nvcc13")->size(), 0u);
}

TEST_F(TrustTest, AWrongWinnerLeavesItsEntryForGood) {
  const Entry both = entry({winner("cutlass_gemm", 0.5), winner("tile_gemm", 0.7)});
  ASSERT_TRUE(registry->store(both));
  ASSERT_TRUE(registry->note_trial(key(), "nvcc13", "fast", trial("cutlass_gemm", 64, 0.5)));
  const Wrong wrong{.label = "cutlass_gemm 64",
                    .realizer = "cutlass_gemm",
                    .config = {{"tile", {64}}},
                    .reason = "rows 3 to 7 differ"};
  ASSERT_TRUE(registry->mark_wrong(key(), "nvcc13", wrong));
  const Entry left = *look().entry;
  EXPECT_EQ(left.status(), "accepted");
  EXPECT_EQ(left.realizer(), "tile_gemm");
  EXPECT_EQ(left.winners.front().evidence.ms, 0.7);
  ASSERT_EQ(left.negative.size(), 1u);
  EXPECT_EQ(left.negative[0]["reason"], "rows 3 to 7 differ");
  const Json trials = *registry->trials(key(), "nvcc13");
  ASSERT_EQ(trials.size(), 1u);  // the measured one is gone
  EXPECT_EQ(trials[0]["outcome"], "wrong_result");

  Entry again = both;  // the fastest by far
  again.created = "2026-01-02T00:00:00Z";
  ASSERT_TRUE(registry->store(again));
  EXPECT_EQ(look().entry->realizer(), "tile_gemm");
  ASSERT_TRUE(
      registry->mark_wrong(key(), "nvcc13", {"tile", "tile_gemm", {{"tile", {64}}}, "too"}));
  registry.reset();
  registry = open();
  EXPECT_EQ(registry->mended(), "");
  EXPECT_EQ(look().own->status(), "failed");
  EXPECT_EQ(look().own->negative.size(), 2u);
  // Marks outlive the bound on trials.
  for (int i = 0; i < most_trials + 1; ++i)
    ASSERT_TRUE(registry->note_trial(key(), "nvcc13", "c", trial("tile_gemm", i, 1)));
  ASSERT_TRUE(registry->settle_trials(key(), "nvcc13"));
  const Json kept = *registry->trials(key(), "nvcc13");
  EXPECT_EQ(std::count_if(kept.begin(), kept.end(), is_wrong_trial), 2);
}

TEST_F(TrustTest, AMarkIsMadeOnceAndComesBackFromTheCopy) {
  ASSERT_TRUE(registry->store(entry({winner("cutlass_gemm", 0.5), winner("tile_gemm", 0.7)})));
  const Wrong wrong{"c", "cutlass_gemm", {{"tile", {64}}}, "wrong"};
  ASSERT_TRUE(registry->mark_wrong(key(), "nvcc13", wrong));
  ASSERT_TRUE(registry->mark_wrong(key(), "nvcc13", wrong));
  EXPECT_EQ(look().entry->negative.size(), 1u);
  registry.reset();
  for (const char* suffix : {"", "-wal", "-shm"})
    std::filesystem::remove((folder.path() / "registry.sqlite").string() + suffix);
  registry = open();
  EXPECT_NE(registry->mended(), "");
  EXPECT_EQ(look().entry->realizer(), "tile_gemm");
  EXPECT_EQ(look().entry->negative.size(), 1u);
}

// A file as versions before 0004 wrote it.
void write_old_file(const std::filesystem::path& file) {
  const Entry e = entry({winner("cutlass_gemm", 0.5)});
  Json body = to_json(e);
  for (const char* name : {"search", "libraries", "provenance", "replaces", "run"})
    body.erase(name);
  const std::string text = body.dump();
  const std::string trial_text = Json(trial("tile_gemm", 8, 3)).dump();
  auto db = store::Database::open(file);
  ASSERT_TRUE(db);
  ASSERT_TRUE(store::migrate(*db, migrations().first(3)));
  auto put = db->prepare(
      "INSERT INTO entries(hash, toolchain, rule, arch, precision, device, status, created, body, "
      "body_hash) VALUES(?1,'nvcc13','gemm','sm_90a','bf16','H200','accepted',?2,?3,?4)");
  ASSERT_TRUE(put);
  ASSERT_TRUE(put->bind(1, e.key.hash())
                  .bind(2, e.created)
                  .bind(3, text)
                  .bind(4, content_hash(text))
                  .run());
  auto note = db->prepare("INSERT INTO trials(key_hash, body, body_hash) VALUES(?1,?2,?3)");
  ASSERT_TRUE(note);
  ASSERT_TRUE(
      note->bind(1, e.key.hash()).bind(2, trial_text).bind(3, content_hash(trial_text)).run());
  const auto bytes = store::append_records(
      journal_of(file),
      {{{"what", "entry"}, {"entry", body}},
       {{"what", "trial"}, {"key", e.key.hash()}, {"trial", parse_json(trial_text)}},
       {{"what", "trial"}, {"key", "other"}, {"trial", {{"label", "x"}}}},
       {{"what", "forget"}, {"key", "other"}}});
  ASSERT_TRUE(bytes);
  ASSERT_TRUE(set_journal_size(*db, *bytes));
}

TEST_F(TrustTest, AnOldFileUpgradesToAStartingPoint) {
  registry.reset();
  for (const char* suffix : {"", "-wal", "-shm", ".copy.jsonl"})
    std::filesystem::remove((folder.path() / "registry.sqlite").string() + suffix);
  write_old_file(folder.path() / "registry.sqlite");
  registry = open();
  EXPECT_EQ(registry->mended(), "");
  const Lookup found = look();
  EXPECT_EQ(found.reuse, rules::Reuse::adapt);
  EXPECT_EQ(found.standing, Standing::shallow);
  EXPECT_EQ(found.entry->realizer(), "cutlass_gemm");
  EXPECT_THAT(found.detail, HasSubstr("unknown"));
  EXPECT_EQ(registry->trials(key(), "nvcc13")->size(), 1u);
  ASSERT_TRUE(registry->store(entry({winner("tile_gemm", 0.6)}, "2026-01-02T00:00:00Z")));
  EXPECT_EQ(look().reuse, rules::Reuse::reuse);
  // And from its copy alone.
  registry.reset();
  for (const char* suffix : {"", "-wal", "-shm"})
    std::filesystem::remove((folder.path() / "registry.sqlite").string() + suffix);
  registry = open();
  EXPECT_NE(registry->mended(), "");
  EXPECT_EQ(look().reuse, rules::Reuse::reuse);
  EXPECT_EQ(registry->trials(key(), "nvcc13")->size(), 1u);
}

}  // namespace
}  // namespace tessera::registry
