#include "check/runs.h"

#include <gtest/gtest.h>

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
