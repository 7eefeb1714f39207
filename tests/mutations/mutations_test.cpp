// A seeded share of what bench/run.sh mutations counts: nothing wrong is proved, nothing equivalent
// is refuted, and what is refuted is replayed.
#include <functional>
#include <gtest/gtest.h>
#include <random>

#include "base/source_folder.h"
#include "base/thorough.h"

#include "mutations/study.h"

namespace tessera::mutations {
namespace {

/// So many of all; ./dev test all takes more.
int share(int count) {
  return thorough() ? 20 * count : count;
}

const MutationSubject& subject(const std::string& name) {
  for (const MutationSubject& s : mutation_subjects())
    if (s.name == name) return s;
  throw std::logic_error("no subject " + name);
}

void expect_caught(const std::string& name, int count) {
  SCOPED_TRACE(name);
  const Result<core::Kernel> kernel = subject(name).make(source_folder());
  ASSERT_TRUE(kernel) << to_text(kernel.error());
  const Study study(*kernel, {.schedules = 16, .explored = 2, .launches = 6});
  ASSERT_EQ(study.why_not(), "");
  std::vector<core::testing::Mutant> all = mutants_of(*kernel, false);
  std::mt19937_64 random(7);
  std::shuffle(all.begin(), all.end(), random);
  int caught = 0, seen = 0, missed = 0;
  for (const core::testing::Mutant& m : all) {
    if (seen++ == count) break;
    const MutantRow row = study.judge(m);
    const std::string text = to_json(row).dump();
    EXPECT_NE(row.verdict, "unsupported") << text;
    if (row.oracle == "equivalent") continue;
    if (row.oracle == "missed") {
      ++missed;
      EXPECT_FALSE(row.synchronization) << text;
      EXPECT_NE(row.verdict, "proved") << text;
      continue;
    }
    ++caught;
    EXPECT_TRUE(row.verdict == "refused" || row.replayed == "same") << text;
  }
  EXPECT_GT(caught, count / 2);
  // Of all edits of data 3 in 100 may be undecided (bench/suites/mutations.py); of a few, none.
  EXPECT_LE(missed, count / 20);
}

TEST(Mutations, OfTheKernelFileAreCaughtAndReplayed) {
  expect_caught("plain", share(6));
}

TEST(Mutations, OfClustersAreCaughtAndReplayed) {
  expect_caught("clusters", share(4));
}

TEST(Mutations, OfOperandsInRegistersAreCaughtAndReplayed) {
  expect_caught("tf32_registers", share(4));
}

TEST(Mutations, OfTheGeneratorAreCaughtAndReplayed) {
  expect_caught("residual", share(4));
}

TEST(Mutations, OfAttentionAreCaughtAndReplayed) {
  expect_caught("attention", share(3));
}

/// All mutants that are `wanted`, of which there are so many.
void expect_shown(const std::string& name, int at_least,
                  const std::function<bool(const core::testing::Mutant&)>& wanted) {
  SCOPED_TRACE(name);
  const Result<core::Kernel> kernel = subject(name).make(source_folder());
  ASSERT_TRUE(kernel) << to_text(kernel.error());
  const Study study(*kernel, {.schedules = 1, .explored = 0, .launches = 1});
  int seen = 0;
  for (const core::testing::Mutant& m : mutants_of(*kernel, false)) {
    if (!wanted(m)) continue;
    const MutantRow row = study.judge(m);
    EXPECT_EQ(row.verdict, "refuted") << to_json(row).dump();
    EXPECT_EQ(row.replayed, "same") << to_json(row).dump();
    ++seen;
  }
  EXPECT_GE(seen, at_least);
}

/// Where nothing bounds a power, small scores are off by roundings alone.
TEST(Mutations, OfWhatBoundsPowersAreShownWithLargeScores) {
  if (!thorough()) GTEST_SKIP() << "half a minute of runs: ./dev test all";
  expect_shown("attention", 5, [](const core::testing::Mutant& m) {
    return m.name == "least_for_greatest" || m.name == "exchanged_difference";
  });
}

/// A launch in which a load leaves its tensor.
TEST(Mutations, OfWhatThreadsBringAreShown) {
  expect_shown("unaligned", 7, [](const core::testing::Mutant& m) {
    const bool some = m.name == "unbounded" || m.name == "moved_index" ||
                      (m.name == "exchanged_indices" && m.site == 0);
    return some && m.edit.find("load.global") != std::string::npos;
  });
}

/// It shows only where the consumers stay behind; else they read what is not yet written.
TEST(Mutations, ADeadlockBehindARaceIsShown) {
  if (!thorough()) GTEST_SKIP() << "half a minute of runs: ./dev test all";
  expect_shown("fp32", 1, [](const core::testing::Mutant& m) {
    return m.name == "flip_parity" && m.site == 5;
  });
}

TEST(Mutations, RightKernelsAreProved) {
  const auto& all = correct_variants();
  EXPECT_GE(all.size(), 40u);
  const std::size_t step = share(1) > 1 ? 1 : 6;
  for (std::size_t i = 0; i < all.size(); i += step) {
    const Result<core::Kernel> k = all[i].make(source_folder());
    ASSERT_TRUE(k) << all[i].name << "\n" << to_text(k.error());
    const MutantRow row = judge_correct(all[i].name, *k);
    EXPECT_EQ(row.verdict, "proved") << all[i].name << ": " << row.detail;
  }
}

/// Slots of 512 bytes: the swizzle of rows of 32 bytes repeats every 256.
TEST(Mutations, TilesOf16ColumnsAreProved) {
  int seen = 0;
  for (const MutationSubject& s : correct_variants()) {
    if (s.name.find("16 columns") == std::string::npos) continue;
    const Result<core::Kernel> k = s.make(source_folder());
    ASSERT_TRUE(k) << s.name << "\n" << to_text(k.error());
    EXPECT_EQ(judge_correct(s.name, *k).detail, "") << s.name;
    ++seen;
  }
  EXPECT_GE(seen, 5);
}

/// The study itself: what it calls edited, and an oracle that tells kernels apart.
TEST(Mutations, TheOracleTellsAWrongKernelFromItself) {
  const Result<core::Kernel> kernel = subject("plain").make(source_folder());
  ASSERT_TRUE(kernel);
  const Oracle oracle(*kernel, check::check(*kernel).sizes,
                      {.schedules = 20, .explored = 2, .launches = 6});
  EXPECT_EQ(oracle.ask(*kernel, true).fault, "");
  EXPECT_GE(oracle.ask(*kernel, true).runs, 20);
  int told = 0;
  for (const core::testing::Mutant& m : mutants_of(*kernel, false)) {
    if ((m.name != "next_k" && m.name != "drop_fence") || m.site != 0) continue;
    EXPECT_NE(oracle.ask(m.kernel, false).fault, "") << m.name;
    const Edited e = edited(*kernel, m.kernel);
    EXPECT_FALSE(e.storages.empty()) << m.name;
    ++told;
  }
  EXPECT_EQ(told, 2);
}

}  // namespace
}  // namespace tessera::mutations
