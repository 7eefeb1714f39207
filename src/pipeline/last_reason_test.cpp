#include "pipeline/last_reason.h"

#include <gtest/gtest.h>

#include "pipeline/testing/evaluated.h"
#include "pipeline/why_not.h"

namespace tessera::pipeline {
namespace {

/// p0 covers all that p1 covers, and p1 was chosen; p2 is apart.
struct LastReason : public ::testing::Test {
  testing::Evaluated e;
  Chosen chosen;

  LastReason() {
    e.work(0, 2);
    e.work(0, 1);
    e.work(3, 3);
    const double kernels[] = {5, 1, 0.5};
    for (std::size_t w = 0; w < 3; ++w) {
      e.eager(w, w == 2 ? 1 : 9);
      e.synthesized(w, kernels[w]);
    }
    chosen = choose_kernels(e.s);
  }
  std::string why(int pattern) { return what_decided(e.s, chosen, pattern); }
};

TEST_F(LastReason, NobodyIsSentToAKernelThatIsNotPlaced) {
  EXPECT_EQ(why(0), "overlaps p1, which saves more by the times of both alone");
  settle_on(chosen, {}, "Inductor is faster", {1, 2});
  EXPECT_EQ(why(0),
            "overlaps p1, which promises more and is not placed either: Inductor is faster");
  EXPECT_EQ(why(1), "Inductor is faster");
  EXPECT_EQ(why(2), "Inductor is faster");
  EXPECT_TRUE(chosen.choice.chosen.empty());
}

TEST_F(LastReason, WhatWasTimedInItsPlaceSaysSo) {
  settle_on(chosen, {}, "Inductor is faster", {0, 1, 2});
  EXPECT_EQ(why(0), "in place of p1 it was timed on the whole module: Inductor is faster");
}

TEST_F(LastReason, AnAlternativeThatWonIsPlacedAndNamed) {
  settle_on(chosen, {0}, "PyTorch runs it faster", {0, 1, 2});
  EXPECT_EQ(why(1), "overlaps p0, with which the whole module is faster");
  EXPECT_EQ(why(2), "PyTorch runs it faster");
  EXPECT_EQ(chosen.choice.chosen, std::vector<int>{0});
  for (const auto& [o, reason] : chosen.choice.left_out) EXPECT_NE(o, 0) << reason;
}

TEST_F(LastReason, WhatStaysDisplacedKeepsItsReason) {
  settle_on(chosen, {1}, "PyTorch runs it faster", {1, 2});
  EXPECT_EQ(why(0), "overlaps p1, which saves more by the times of both alone");
  settle_on(chosen, {1}, "PyTorch runs it faster", {0, 1, 2});
  EXPECT_EQ(why(0), "overlaps p1, with which the whole module is faster");
}

}  // namespace
}  // namespace tessera::pipeline
