#include "pipeline/by_hand_promote.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera::pipeline {
namespace {

using ::testing::HasSubstr;

kernel::Winner winner(const std::string& realizer, double ms, double ci95 = 0.01) {
  kernel::Winner w;
  w.candidate.realizer = realizer;
  w.evidence.ms = ms;
  w.evidence.ci95 = ci95;
  return w;
}

evaluate::Tuned in_order(std::vector<kernel::Winner> winners) {
  evaluate::Tuned t;
  t.winners = std::move(winners);
  return t;
}

const std::vector<kernel::Candidate> variants = {winner("by_hand", 0).candidate};

TEST(Promote, TheFastestOfAllIsStoredWhoeverMadeIt) {
  const auto ours = in_order({winner("by_hand", 2), winner("library_aten", 3)});
  Promotion p = promote(ours, variants, std::nullopt, true, 3);
  EXPECT_TRUE(p.stored && p.won) << p.why;
  p = promote(ours, variants, Held{winner("tile_gemm", 4), true}, true, 3);
  EXPECT_TRUE(p.stored && p.won) << p.why;
  // The registry's first was beaten by both: what is stored is the faster of them.
  const auto other = in_order({winner("library_linear", 1), winner("by_hand", 2)});
  p = promote(other, variants, Held{winner("tile_gemm", 4), true}, true, 3);
  EXPECT_TRUE(p.stored && !p.won);
  EXPECT_EQ(p.why, "library_linear is faster (1 ms a call): that is stored in the registry");
  p = promote(other, variants, std::nullopt, false, 3);
  EXPECT_FALSE(p.stored);
  EXPECT_THAT(p.why, HasSubstr("the registry is not used"));
}

TEST(Promote, WhatTheRegistryHasAlreadyIsNotStoredAgain) {
  auto best = winner("tile_gemm", 1);
  best.evidence.sustained_ms = 0.9;
  const auto tuned = in_order({best, winner("by_hand", 2)});
  const Promotion p = promote(tuned, variants, Held{best, true}, true, 3);
  EXPECT_FALSE(p.stored || p.won);
  EXPECT_EQ(p.why,
            "tile_gemm is faster (1 ms a call, 0.9 ms back to back), and the registry has it: not "
            "stored");
  EXPECT_EQ(promote(in_order({}), variants, std::nullopt, true, 3).why, "nothing passed in full");
}

TEST(Promote, ADisturbedTimeTakesThePlaceOfNoneWithinItsSpread) {
  const Held stored{winner("tile_gemm", 5, 0.1), false};
  const auto timed = [&](double ms, double ci95, const Held& held) {
    return promote(in_order({winner("by_hand", ms, ci95)}), variants, held, true, 3);
  };
  EXPECT_THAT(timed(4.5, 2, stored).why, HasSubstr("stored with 5 ms, is not slower"));
  EXPECT_TRUE(timed(2, 1, stored).won) << "faster beyond its spread";
  EXPECT_TRUE(timed(4.5, 0.1, stored).won) << "a quiet run";
  EXPECT_TRUE(timed(4.5, 2, {winner("tile_gemm", 5, 3), false}).won) << "no figure to hold to";
  EXPECT_TRUE(promote(in_order({winner("by_hand", 4.5, 2)}), variants, std::nullopt, true, 3).won);
  // What it was timed beside counts, however noisy, and not what was seen at another moment.
  EXPECT_TRUE(timed(4.5, 2, {winner("tile_gemm", 9, 4), true}).won);
  EXPECT_THAT(timed(4.5, 2, {winner("tile_gemm", 6, 4), true}).why,
              HasSubstr("timed beside it with 6 ms"));
}

TEST(Promote, TimesThatDifferByFactorsAreNoFigure) {
  auto wild = winner("by_hand", 1);
  wild.evidence.unreliable = true;
  const Promotion p = promote(in_order({wild}), variants, std::nullopt, true, 3);
  EXPECT_FALSE(p.stored || p.won);
  EXPECT_THAT(p.why, HasSubstr("in 3 measurements the times of by_hand differed"));
}

}  // namespace
}  // namespace tessera::pipeline
