#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "pipeline/stages.h"

namespace tessera::pipeline {
namespace {

using evaluate::Tuned;
using ::testing::HasSubstr;
using tune::Outcome;

kernel::Candidate candidate(const std::string& realizer, int tile) {
  kernel::Candidate c;
  c.realizer = realizer;
  c.kind = realizer.starts_with("library") ? kernel::Kind::library : kernel::Kind::synthesized;
  c.config = {{"tile", {tile}}};
  if (c.kind == kernel::Kind::synthesized) {
    c.source = toolchain::Source{.name = "k", .text = "int x;"};
    c.launches = {{.knobs = {{"raster", "m"}}, .ints = {1}}};
  }
  return c;
}

kernel::Winner winner(const std::string& realizer, int tile, double ms) {
  kernel::Winner w{.candidate = candidate(realizer, tile), .built = {}, .evidence = {}};
  w.evidence.ms = ms;
  return w;
}

/// A session with a registry and one work, that knows of no Python and no compiler.
class RememberTest : public ::testing::Test {
 protected:
  TemporaryFolder folder;
  Options options;
  Context context;
  Session s{.options = options, .context = context};
  const std::vector<kernel::Candidate> candidates = {
      candidate("tile_gemm", 64), candidate("tile_gemm", 128), candidate("library_sdpa", 1)};

  void SetUp() override {
    s.tools.registry = std::move(*registry::Registry::open(folder.path() / "registry.sqlite"));
    s.tools.toolchain = "nvcc13";
    s.found.arch = *arch::find("host");
    s.found.graph.meta["libraries"] = {{"torch", "2.11.0"}};
    for (const double ms : {3.0, 1.0}) {
      rules::Pattern p{.id = "p", .rule = "gemm"};
      p.unfused_ms = ms;
      s.found.discovery.patterns.push_back(p);
      Work w;
      w.patterns = {static_cast<int>(s.work.size())};
      w.key = {"gemm " + std::to_string(ms), "fp32", "cpu", registry::measuring_policy()};
      s.work.push_back(w);
    }
  }
  Work& work() { return s.work.front(); }
  void found(std::vector<kernel::Winner> winners, const std::string& because, double seconds) {
    Tuned t;
    t.winners = std::move(winners);
    t.eager_ms = 2;
    t.seconds = seconds;
    t.stopped_because = because;
    for (const auto& c : candidates) t.candidates.push_back({c.label(), c.kind});
    t.trials = {{.point = {0, 0}, .outcome = Outcome::measured, .ms = 1}};
    work().tuned = std::move(t);
    ASSERT_TRUE(remember(s, work()));
  }
  /// As the next run finds it.
  Work& look() {
    work().tuned.reset();
    work().beside_own = false;
    s.run = name_run();
    EXPECT_TRUE(look_up(s));
    return work();
  }
  void note(const kernel::Candidate& c, Outcome outcome, Json detail = Json::object()) {
    note_trial(
        s, work(),
        evaluate::trial_to_json(
            {.point = {0, 0}, .outcome = outcome, .ms = 1, .detail = std::move(detail)}, {c}));
  }
  std::vector<tune::Trial> known() {
    auto trials = known_trials(s, work(), candidates);
    EXPECT_TRUE(trials);
    return evaluate::trials_from_json(*trials, candidates);
  }
};

TEST_F(RememberTest, SecondsAreAskedByTheShareOfTheWork) {
  options.seconds = 20;
  EXPECT_EQ(asked_of(s, s.work[0]).seconds, 15);
  EXPECT_EQ(asked_of(s, s.work[1]).seconds, 5);
  options.seconds = 0;
  EXPECT_EQ(asked_of(s, s.work[0]).seconds, 0);
}

TEST_F(RememberTest, ACutSearchIsReusedForItsSecondsAndGoesOnForMore) {
  options.seconds = 20;
  found({winner("tile_gemm", 64, 1)}, "budget of 15 s", 14);
  EXPECT_EQ(look().reuse, rules::Reuse::reuse);
  options.seconds = 40;
  EXPECT_EQ(look().reuse, rules::Reuse::adapt);
  EXPECT_THAT(work().reuse_detail, HasSubstr("cut at 15 s of default"));
  // It went on, and 16 s more were enough with what had been spent.
  found({winner("tile_gemm", 64, 1)}, "budget of 30 s", 16);
  EXPECT_EQ(look().reuse, rules::Reuse::reuse);
  EXPECT_EQ(work().own->search.passes.at(0).seconds_spent, 30);
}

TEST_F(RememberTest, NoKernelInAFewSecondsIsNoVerdict) {
  options.seconds = 2;
  found({}, "budget of 1.5 s", 1.5);
  EXPECT_EQ(look().reuse, rules::Reuse::reuse);
  options.seconds = 0;
  EXPECT_EQ(look().reuse, rules::Reuse::fresh);
  found({}, "space exhausted", 3);
  EXPECT_EQ(look().reuse, rules::Reuse::reuse);
}

TEST_F(RememberTest, AStoppedSearchIsNoVerdict) {
  const std::atomic<bool> stop = true;
  context.stop = &stop;
  found({winner("tile_gemm", 64, 1)}, "space exhausted", 3);
  EXPECT_EQ(look().standing, registry::Standing::shallow);
  EXPECT_EQ(work().own->search.passes.at(0).stop, registry::Stop::interrupted);
}

TEST_F(RememberTest, TrialsAreKnownToTheNextSearch) {
  note(candidates[0], Outcome::measured, {{"final", true}, {"sustained_ms", 3}});
  note(candidates[1], Outcome::wrong_result);
  found({winner("tile_gemm", 64, 1)}, "space exhausted", 3);
  const auto trials = known();
  ASSERT_EQ(trials.size(), 2u);
  // Those of another session's finals are not beside this one's.
  EXPECT_EQ(trials[0].detail, Json::object());
  EXPECT_EQ(trials[1].outcome, Outcome::wrong_result);
  s.tools.toolchain = "nvcc14";
  EXPECT_TRUE(known().empty());
}

TEST_F(RememberTest, WhatSaysNothingOfThisRunIsNotKnown) {
  note(candidates[0], Outcome::unsupported, {{"kind", "out_of_memory"}});
  note(candidates[1], Outcome::measured, {{"unreliable", true}});
  note(candidates[2], Outcome::measured);
  EXPECT_EQ(known().size(), 1u);
  s.found.graph.meta["libraries"] = {{"torch", "2.12.0"}};
  EXPECT_TRUE(known().empty());
}

TEST_F(RememberTest, RetuneBeginsAnew) {
  note(candidates[0], Outcome::measured);
  options.retune = true;
  EXPECT_TRUE(known().empty());
}

TEST_F(RememberTest, AWinnerThatWasBesideTheOldOneTakesItsPlace) {
  found({winner("tile_gemm", 64, 1)}, "budget of 3 s", 3);
  options.effort = "max";
  look();
  found({winner("tile_gemm", 128, 1.1)}, "space exhausted", 9);
  EXPECT_EQ(look().own->winners.front().candidate.config["tile"][0], 64);
  note(candidates[0], Outcome::measured);
  EXPECT_TRUE(work().beside_own);
  found({winner("tile_gemm", 128, 1.1)}, "space exhausted", 9);
  EXPECT_EQ(look().own->winners.front().candidate.config["tile"][0], 128);
}

TEST_F(RememberTest, AWinnerThatIsWrongInTheModuleIsNotGivenAgain) {
  note(candidates[0], Outcome::measured);
  const std::vector<kernel::Winner> both = {winner("tile_gemm", 64, 1),
                                            winner("library_sdpa", 1, 1.5)};
  found(both, "space exhausted", 3);
  ASSERT_TRUE(mark_wrong(s, work(), candidates[0].label(), "differs by 4 % in the module"));
  EXPECT_EQ(look().own->realizer(), "library_sdpa");
  EXPECT_EQ(work().own->winners.size(), 1u);
  EXPECT_EQ(work().own->negative.back()["reason"], "differs by 4 % in the module");
  options.retune = true;
  const auto trials = known();
  ASSERT_EQ(trials.size(), 1u);
  EXPECT_EQ(trials[0].point, (tune::Point{0, 0}));
  EXPECT_EQ(trials[0].outcome, Outcome::wrong_result);
  found(both, "space exhausted", 3);
  EXPECT_EQ(look().own->realizer(), "library_sdpa");
  found({winner("library_sdpa", 1, 1.5)}, "space exhausted", 3);
  ASSERT_TRUE(mark_wrong(s, work(), candidates[2].label(), "this too"));
  EXPECT_EQ(look().own->status(), "failed");
  ASSERT_TRUE(mark_wrong(s, s.work[1], "any", "nothing was tuned"));
}

TEST_F(RememberTest, StoredCandidatesAreFoundAmongTheOffers) {
  const Json reordered = parse_json(R"({"b":[1],"a":{"y":2,"x":1}})");
  kernel::Candidate c{.realizer = "r", .config = {{"a", {{"x", 1}, {"y", 2}}}, {"b", {1}}}};
  EXPECT_EQ(offered({candidates[0], c}, "r", reordered)->realizer, "r");
  c.config["b"] = {2};
  EXPECT_EQ(offered({candidates[0], c}, "r", reordered), nullptr);
}

}  // namespace
}  // namespace tessera::pipeline
