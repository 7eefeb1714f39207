// Every kernel with one edit that breaks its synchronization is refuted, and no equivalent one is.
#include <gtest/gtest.h>
#include <map>
#include <set>

#include "base/thorough.h"

#include "check/check.h"
#include "check/kind.h"
#include "core/testing/gemm.h"
#include "core/testing/mutate.h"
#include "core/testing/mutate_cluster.h"

namespace tessera::check {
namespace {

using core::testing::Breaks;
using core::testing::Mutant;

/// Edits that change nothing: lanes and warps that have committed no bulk group wait for none, and
/// a part that waits for all stores need not. With three parts each of the other waits matters.
const std::set<std::pair<std::string, int>> equivalent = {
    {"all_lanes", 4}, {"all_lanes", 6}, {"drop_guard", 3}, {"drop_guard", 4}, {"drop_guard", 6}};

TEST(CheckMutants, OfSynchronizationAreRefuted) {
  const Result<core::Kernel> k = core::testing::gemm({.bm = 128, .bn = 192, .stages = 3});
  ASSERT_TRUE(k);
  int broken = 0;
  for (const Mutant& m : core::testing::mutants(*k)) {
    if (m.breaks == Breaks::data) continue;
    const Report r = check(m.kernel);
    const std::string text =
        m.name + " " + std::to_string(m.site) + ": " + m.edit + "\n" + to_text(r);
    if (m.breaks == Breaks::nothing || equivalent.contains({m.name, m.site})) {
      EXPECT_NE(r.verdict(), Verdict::refuted) << text;
      continue;
    }
    ++broken;
    EXPECT_EQ(r.verdict(), Verdict::refuted) << text;
  }
  EXPECT_GT(broken, 75);
}

TEST(CheckMutants, OfPairsAreRefuted) {
  // Of the last meeting one role's wait is enough: the block stays while its warps wait.
  std::set<std::pair<std::string, int>> harmless = equivalent;
  harmless.insert({{"drop_cluster_wait", 1}, {"drop_cluster_wait", 2}});
  // The blocks beside each other are ./dev test all's.
  const bool all_ways = thorough();
  for (bool beside : all_ways ? std::vector{false, true} : std::vector{false}) {
    const Result<core::Kernel> k =
        core::testing::gemm({.bm = 128, .bn = 192, .stages = 3, .cluster = 2, .beside = beside});
    ASSERT_TRUE(k);
    std::vector<Mutant> all = core::testing::mutants(*k);
    for (Mutant& m : core::testing::cluster_mutants(*k)) all.push_back(std::move(m));
    int broken = 0;
    for (const Mutant& m : all) {
      if (m.breaks == Breaks::data) continue;
      const Runs r = run(m.kernel);
      const std::string text = m.name + " " + std::to_string(m.site) + ": " + m.edit;
      if (m.breaks == Breaks::nothing || harmless.contains({m.name, m.site})) {
        EXPECT_TRUE(r.proved) << text;
        continue;
      }
      ++broken;
      EXPECT_FALSE(r.violations.empty()) << text << ": " << r.why_not;
    }
    EXPECT_GT(broken, 120);
  }
}

/// Blocks that end without meeting: each waits until the other one's arrivals have come.
TEST(CheckMutants, OfPairsThatDrainAreRefuted) {
  const Result<core::Kernel> k = core::testing::gemm(
      {.bm = 128, .bn = 192, .stages = 3, .cluster = 2, .early = true, .drains = true});
  ASSERT_TRUE(k);
  EXPECT_EQ(check(*k).find("exit_order")->verdict, Verdict::proved);
  int broken = 0;
  for (const Mutant& m : core::testing::mutants(*k)) {
    if (m.breaks == Breaks::data || m.name == "late_grid_wait") continue;
    const Runs r = run(m.kernel);
    const std::string text = m.name + " " + std::to_string(m.site) + ": " + m.edit;
    if (m.breaks == Breaks::nothing || equivalent.contains({m.name, m.site})) {
      EXPECT_TRUE(r.proved) << text;
      continue;
    }
    ++broken;
    EXPECT_FALSE(r.violations.empty()) << text << ": " << r.why_not;
  }
  EXPECT_GT(broken, 60);
}

TEST(CheckMutants, WhatBlocksDoToEachOtherIsNamed) {
  const std::map<std::string, std::string> kinds = {
      {"drop_first_meeting", "barrier_init"},
      {"blocks_meet_first", "barrier_init"},
      {"drop_last_meeting", "exit_order"},
      {"relaxed_end", "exit_order"},
      {"drop_cluster_arrive", "cluster_barrier"},
      {"mask_of_own", "deadlock"},
      {"bytes_of_own_share", "arrivals"},
      {"same_share", "race_shared"},
      {"rank_beyond", "bounds"},
      {"count_of_one_block", "arrivals"},
  };
  const Result<core::Kernel> k =
      core::testing::gemm({.bm = 128, .bn = 128, .stages = 2, .cluster = 2});
  ASSERT_TRUE(k);
  std::set<std::string> seen;
  for (const Mutant& m : core::testing::cluster_mutants(*k)) {
    const auto kind = kinds.find(m.name);
    if (kind == kinds.end() || !seen.insert(m.name).second) continue;
    const Report r = check(m.kernel);
    EXPECT_EQ(r.find(kind->second)->verdict, Verdict::refuted) << m.name << "\n" << to_text(r);
  }
  EXPECT_EQ(seen.size(), kinds.size());
}

TEST(CheckMutants, AreRefutedAtTheEditOrAtTheOtherAccess) {
  const Result<core::Kernel> k = core::testing::gemm({.stages = 2});
  ASSERT_TRUE(k);
  for (const Mutant& m : core::testing::mutants(*k)) {
    if (m.name != "drop_wait" || m.site != 2) continue;
    const Report r = check(m.kernel);
    const Finding* race = r.find("race_shared");
    ASSERT_NE(race, nullptr);
    ASSERT_EQ(race->verdict, Verdict::refuted);
    const Diagnostic& d = race->diagnostics.front();
    EXPECT_EQ(d.message, "shared memory is overwritten while it may still be read");
    EXPECT_EQ(d.notes[0], "thread: warp 0 (0 of role `producer`), the elected lane");
    EXPECT_EQ(d.notes[1], "point: `tma.load` at turn 1, k 0");
    EXPECT_EQ(d.notes[2].substr(0, 47), "against: `wgmma.f32.bf16.bf16.ss`, read here");
  }
}

}  // namespace
}  // namespace tessera::check
