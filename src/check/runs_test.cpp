#include "check/runs.h"

#include <gtest/gtest.h>
#include <set>

#include "base/thorough.h"

#include "core/testing/gemm.h"

namespace tessera::check {
namespace {

using core::testing::GemmShape;

std::string what(const Runs& r) {
  std::string out = r.why_not;
  for (const Violation& v : r.violations)
    out += fmt::format("\n{}: {} (expected {}, found {}) at {}, warp {}", v.kind, v.message,
                       v.expected, v.found, v.at, v.warp);
  return out;
}

TEST(CheckRuns, CorrectProductsAreProved) {
  for (const GemmShape& s :
       {GemmShape{}, GemmShape{.stages = 2}, GemmShape{.stages = 3},
        GemmShape{.bn = 128, .stages = 5}, GemmShape{.bn = 128, .stages = 6},
        GemmShape{.bm = 64, .stages = 4}, GemmShape{.bm = 64, .bn = 64, .stages = 2},
        GemmShape{.bm = 128, .bn = 192, .stages = 4}, GemmShape{.bk = 32, .stages = 4},
        GemmShape{.element = DType::float16}}) {
    const Result<core::Kernel> k = core::testing::gemm(s);
    ASSERT_TRUE(k);
    const Runs r = run(*k);
    EXPECT_TRUE(r.proved) << s.bm << " " << s.bn << " " << s.bk << " " << s.stages << what(r);
    EXPECT_GT(r.states, 100);
  }
}

TEST(CheckRuns, PairsOfBlocksAreProved) {
  // The blocks beside each other are ./dev test all's.
  const bool all_ways = thorough();
  for (bool beside : all_ways ? std::vector{false, true} : std::vector{false})
    for (GemmShape s : {GemmShape{.stages = 3}, GemmShape{}, GemmShape{.bn = 128, .stages = 5},
                        GemmShape{.bn = 128, .stages = 6}, GemmShape{.bm = 64, .stages = 4},
                        GemmShape{.bn = 192, .stages = 4},
                        GemmShape{.bk = 128, .element = DType::float8_e4m3fn}}) {
      s.cluster = 2;
      s.beside = beside;
      const Result<core::Kernel> k = core::testing::gemm(s);
      ASSERT_TRUE(k);
      const Runs r = run(*k);
      EXPECT_TRUE(r.proved) << s.bm << " " << s.bn << " " << s.stages << " " << beside << what(r);
      EXPECT_GT(r.states, 100);
      EXPECT_LT(r.states, 1500);
    }
}

TEST(CheckRuns, ReadsOfAPairSeeTheSharesOfBoth) {
  const Result<core::Kernel> k = core::testing::gemm({.cluster = 2});
  const Runs r = run(*k);
  std::set<std::pair<int, int>> of_b, of_a;  // reader and writer
  for (const ReadsFrom& f : r.reads_from) {
    EXPECT_EQ(f.turns, 0);
    const std::string& name = f.write->as<core::Issue>()->form->name;
    if (name == "tma.load_multicast") of_b.insert({f.reader, f.writer});
    if (name == "tma.load") of_a.insert({f.reader, f.writer});
  }
  EXPECT_EQ(of_b, (std::set<std::pair<int, int>>{{0, 0}, {0, 1}, {1, 0}, {1, 1}}));
  EXPECT_EQ(of_a, (std::set<std::pair<int, int>>{{0, 0}, {1, 1}}));
}

TEST(CheckRuns, TurnsThatDependOnTheRankAreNotDecided) {
  // Blocks of a pair take tiles of their own, one after the other.
  Result<core::Kernel> k = core::testing::gemm({.bn = 128, .stages = 2});
  ASSERT_TRUE(k);
  core::Kernel paired = *k;
  paired.cluster = 2;
  const Runs r = run(paired);
  EXPECT_FALSE(r.proved);
  EXPECT_TRUE(r.violations.empty());
  EXPECT_NE(r.why_not.find("rank"), std::string::npos) << r.why_not;
}

TEST(CheckRuns, ReadsSeeTheirOwnTurn) {
  const Result<core::Kernel> k = core::testing::gemm();
  const Runs r = run(*k);
  int products = 0;
  for (const ReadsFrom& f : r.reads_from) {
    EXPECT_EQ(f.turns, 0);
    products += f.read->as<core::Issue>()->form->name.starts_with("wgmma") ? 1 : 0;
  }
  EXPECT_EQ(products, 8);  // four steps, A and B
}

TEST(CheckRuns, EffortIsALimit) {
  const Result<core::Kernel> k = core::testing::gemm();
  const Runs r = run(*k, {.events = 4'000'000, .states = 10});
  EXPECT_FALSE(r.proved);
  EXPECT_TRUE(r.violations.empty());
  EXPECT_EQ(r.why_not, "its states do not repeat within the effort");
}

}  // namespace
}  // namespace tessera::check
