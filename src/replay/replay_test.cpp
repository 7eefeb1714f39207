// Witnesses of refutations, run by the interpreter.
#include "replay/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "check/kind.h"
#include "core/testing/gemm.h"
#include "core/testing/mutate.h"

namespace tessera::replay {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

core::Kernel small() {
  return *core::testing::gemm({.bm = 64, .bn = 64, .bk = 16, .stages = 2});
}

core::Kernel mutant(const std::string& name, int site) {
  const core::Kernel k = small();
  for (core::testing::Mutant& m : core::testing::mutants(k))
    if (m.name == name && m.site == site) return std::move(m.kernel);
  ADD_FAILURE() << "no mutant " << name << " " << site;
  return k;
}

/// The report of a kernel, with its witnesses replayed.
check::Report replayed(const core::Kernel& k) {
  const std::optional<check::Means> means = *check::means_of(k);
  check::Report r = check::check(k, {}, means);
  Replayer(k, means).replay(r);
  return r;
}

TEST(Replay, AWitnessOfEachKindIsSeenByTheInterpreter) {
  const std::vector<std::tuple<std::string, int, std::string>> all = {
      {"drop_arrive", 0, "deadlock"},        {"flip_parity", 0, "deadlock"},
      {"drop_wait", 2, "race_shared"},       {"drop_fence", 2, "proxy_fence"},
      {"drop_commit", 0, "async_registers"}, {"duplicate_arrive", 0, "arrivals"},
      {"next_k", 0, "k_agreement"},          {"moved_store", 0, "placement"},
      {"drop_accumulate", 0, "reduction"},   {"drop_barrier", 0, "barrier_init"},
  };
  for (const auto& [name, site, kind] : all) {
    const check::Report r = replayed(mutant(name, site));
    const check::Finding* f = r.find(kind);
    ASSERT_EQ(f->verdict, check::Verdict::refuted) << name << "\n" << to_text(r);
    const Diagnostic& d = f->diagnostics.front();
    EXPECT_EQ(d.data.value("replayed", ""), "same") << name << "\n" << to_text(d);
    EXPECT_THAT(d.notes.back(), StartsWith("replayed: TS08")) << name;
  }
}

/// It reads its tensors before the grids before it have ended.
TEST(Replay, AnEarlyAccessIsSeenByTheInterpreter) {
  const core::Kernel k =
      *core::testing::gemm({.bm = 64, .bn = 64, .bk = 16, .stages = 2, .early = true});
  for (core::testing::Mutant& m : core::testing::mutants(k)) {
    if (m.name != "late_grid_wait") continue;
    const check::Report r = replayed(m.kernel);
    const check::Finding* f = r.find("early_access");
    ASSERT_EQ(f->verdict, check::Verdict::refuted) << to_text(r);
    EXPECT_EQ(f->diagnostics.front().data.value("replayed", ""), "same") << to_text(r);
    return;
  }
  FAIL() << "there is no such mutant";
}

/// The launch and the seed of a note lead to what it says.
TEST(Replay, WhatWasSeenIsSeenAgain) {
  const core::Kernel k = mutant("drop_wait", 2);
  const check::Report r = replayed(k);
  const Diagnostic& d = r.find("race_shared")->diagnostics.front();
  simulate::Launch launch;
  launch.parameters = d.data.at("launch").get<std::map<std::string, int64_t>>();
  launch.multiprocessors = d.data.at("multiprocessors");
  for (const core::Tensor& t : k.tensors)
    if (t.access == core::Access::input)
      launch.inputs[t.name].resize(static_cast<std::size_t>(lie_of(t, launch)->span()), 1);
  const Result<simulate::Outcome> o =
      simulate::simulate(k, launch, simulate::Schedule::seeded(d.data.at("seed")));
  ASSERT_TRUE(o) << to_text(o.error());
  ASSERT_FALSE(o->findings.empty());
  EXPECT_EQ(o->findings.front().code, d.data.at("seen").get<std::string>());
}

/// Of a right kernel nothing is seen, so a witness that is none is not called replayed.
TEST(Replay, ARefutationWithoutAFaultIsNotCalledReplayed) {
  const core::Kernel right = small();
  const std::optional<check::Means> means = *check::means_of(right);
  check::Report r = check::check(right, {}, means);
  ASSERT_EQ(r.verdict(), check::Verdict::proved);
  Diagnostic d = fail(simulate::race, "a race that there is not");
  d.data["turns"] = std::vector<int64_t>(r.sizes.size(), 1);
  Replayer replayer(right, means, {.launches = 3, .schedules = 2, .more = 5});
  EXPECT_EQ(replayer.replay(r, "race_shared", d), Shown::nothing);
  // Two schedules of each launch, and others of all three until five more have run.
  EXPECT_THAT(d.notes.back(), HasSubstr("not replayed: 12 runs of small launches show nothing"));
  EXPECT_EQ(replayer.replay(r, "k_agreement", d), Shown::nothing);
  EXPECT_THAT(d.notes.back(), HasSubstr("not replayed: 6 runs of small launches show nothing"));
  EXPECT_EQ(replayer.replay(r, "alignment", d), Shown::no_events);
}

TEST(Replay, LaunchesHaveTheTurnsThatAreWanted) {
  const core::Kernel k = small();
  const check::Report r = check::check(k);
  ASSERT_EQ(r.sizes.size(), 2u);
  const Launches launches(k, r.sizes);
  for (const std::vector<int64_t>& turns : {std::vector<int64_t>{1, 1}, {2, 3}, {3, 2}}) {
    const std::vector<Small> found = launches.near(turns, 3);
    ASSERT_EQ(found.size(), 3u);
    EXPECT_TRUE(found.front().exact);
    const Result<simulate::Simulator> s = simulate::Simulator::make(k, found.front().launch);
    EXPECT_TRUE(s) << to_text(s.error());
  }
  EXPECT_FALSE(launches.near({0, 1}, 1).front().exact) << "no block has no tile";
}

TEST(Replay, ValuesAreThoseOfTheMeaning) {
  for (const auto epilogue : {core::testing::Epilogue::none, core::testing::Epilogue::residual}) {
    const core::Kernel k = *core::testing::gemm(
        {.bm = 64, .bn = 64, .bk = 16, .stages = 2, .batched = true, .epilogue = epilogue});
    const std::optional<check::Means> means = *check::means_of(k);
    const Launches launches(k, check::check(k).sizes);
    for (const Small& s : launches.near({1, 2}, 2)) {
      const Reference reference(k, *means, s.launch);
      Result<simulate::Outcome> o = simulate::simulate(k, s.launch);
      ASSERT_TRUE(o);
      EXPECT_EQ(reference.wrong_element(*o), std::nullopt) << to_string(k, s.launch);
      o->outputs.begin()->second.back() += 3;
      EXPECT_NE(reference.wrong_element(*o), std::nullopt);
    }
  }
}

}  // namespace
}  // namespace tessera::replay
