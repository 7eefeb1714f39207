// Four turns over keys stand for all in kernels/attention.py: what differs in a later turn alone is
// not proved.
#include <gtest/gtest.h>

#include "proofs/attention_edits.h"

namespace tessera::proofs {
namespace {

constexpr const char* weigh = "wgmma(powers, v[step - 1].T, sums)";
constexpr const char* factor = "                    sums *= factor\n";

/// The sums are 0 up to there.
TEST(AttentionTurns, WhatDiffersInTheFirstTurnsAloneIsProved) {
  for (const auto& [from, to] :
       {std::pair<std::string, std::string>{
            weigh, "wgmma(powers, v[step - 1].T, sums, start=step.index == 1)"},
        {factor, "                    sums *= factor * (2 if step.index == 0 else 1)\n"}}) {
    const check::Report r = attention_report(edited_attention(from, to), {});
    EXPECT_EQ(r.verdict(), check::Verdict::proved) << to_text(r);
  }
}

TEST(AttentionTurns, SumsThatBeginAnewLaterAreNotProved) {
  expect_not_proved("sums begin anew in a later turn", weigh,
                    "wgmma(powers, v[step - 1].T, sums, start=step.index == 4)", nullptr, {});
  expect_not_proved("scores are added to later",
                    "wgmma(q[work.turn], k[step].T, scores, start=True)",
                    "wgmma(q[work.turn], k[step].T, scores, start=step.index < 4)", nullptr, {});
}

TEST(AttentionTurns, ANumberOfALaterTurnIsNotProved) {
  expect_not_proved("a factor of 2 in later turns", factor,
                    "                    sums *= factor * (1 if step.index < 4 else 2)\n", nullptr,
                    {});
}

TEST(AttentionTurns, AMaskOfOtherKeysInALaterTurnIsNotProved) {
  expect_not_proved("the mask of the block before",
                    "part(key_blocks - 1 - step.index, KEYS)], like",
                    "part(key_blocks - 1 - step.index + (0 if step.index < 4 else 1), KEYS)], like",
                    nullptr, {{"MASK", 1}});
}

/// A step's bits beyond those of a few hundred turns.
TEST(AttentionTurns, ABranchThatIsLeftOutMuchLaterIsNotProved) {
  const std::string branch = "                if step.index > 0:\n";
  for (const char* condition : {"step.index < 300", "(step.index >> 9) == 0",
                                "(step.index >> (warp + 8)) == 0", "step.index & 1024 == 0"})
    expect_not_proved(condition, (branch + factor).c_str(),
                      ("                if step.index > 0 and " + std::string(condition) +
                       " and TQ > 0:\n" + factor)
                          .c_str(),
                      nullptr, {});
}

}  // namespace
}  // namespace tessera::proofs
