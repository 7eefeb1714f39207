// Results of kernels/attention.py lie in shared memory on their way to the output: what else is
// written there, and by whom. And what is loaded besides stays within its tensor.
#include <gtest/gtest.h>

#include "proofs/attention_edits.h"

namespace tessera::proofs {
namespace {

using Edits = std::vector<std::pair<std::string, std::string>>;

check::Report report(const Edits& edits, const Constants& constants) {
  std::string text = attention_text();
  for (const auto& [from, to] : edits) {
    const std::size_t at = text.find(from, text.find("def attention"));
    EXPECT_NE(at, std::string::npos) << from;
    if (at != std::string::npos) text.replace(at, from.size(), to);
  }
  return attention_report(text, constants);
}

constexpr const char* put = "            stmatrix(result, q[work.turn, own, :])\n";

TEST(AttentionResults, WhatIsStoredOverThemIsNotProved) {
  const check::Report r =
      report({{put, std::string(put) + "            sync(\"warpgroup\")\n"
                                       "            store(result * 2.0, q[work.turn, :, :])\n"}},
             {});
  EXPECT_NE(r.verdict(), check::Verdict::proved) << to_text(r);
}

/// The text has them in one order, the named barriers in the other.
TEST(AttentionResults, TwoWarpsThatWriteToOnePlaceAreNotProved) {
  const std::string barrier = "    turn = named_barrier(GROUPS, threads=256)\n";
  const check::Report r =
      report({{barrier, barrier + "    order = named_barrier(2, threads=256)\n"},
              {put,
               "            if warpgroup == 1:\n"
               "                order[0].wait()\n"
               "                stmatrix(result, q[work.turn, part(0, 64), :])\n"
               "                fence.async_shared()\n"
               "                order[1].arrive()\n"
               "            if warpgroup == 0:\n"
               "                stmatrix(result, q[work.turn, part(0, 64), :])\n"
               "                fence.async_shared()\n"
               "                order[0].arrive()\n"
               "                order[1].wait()\n"
               "            if warpgroup == 1:\n"
               "                stmatrix(result, q[work.turn, part(1, 64), :])\n"}},
             {{"GROUPS", 2}, {"TURNS", 0}});
  EXPECT_NE(r.verdict(), check::Verdict::proved) << to_text(r);
}

/// A load of one more tensor, which nothing is made of.
check::Report with_load(const std::string& index) {
  const std::string queries = "    Q: Tensor[ELEMENT", registers = "        begin_turns(turn",
                    step = "                k_full[step].wait()\n                take_turn";
  return report(
      {{queries, "    TABLE: Tensor[f32, \"TQ\"],\n" + queries},
       {registers,
        "        more = registers(f32, [128, 1], layout=\"(128,1):(1,128)\")\n" + registers},
       {step, "                issue(\"load.global.4\", more, TABLE[" + index + "])\n" + step}},
      {});
}

TEST(AttentionLoads, StayWithinTheirTensor) {
  const check::Report r = with_load("min(queries.start, TQ - 1)");
  EXPECT_EQ(r.verdict(), check::Verdict::proved) << to_text(r);
}

TEST(AttentionLoads, ThatLeaveTheirTensorAreRefuted) {
  for (const char* index : {"queries.start + 100000", "queries.start - 1"}) {
    const check::Report r = with_load(index);
    EXPECT_EQ(r.find("placement")->verdict, check::Verdict::refuted) << to_text(r);
  }
}

}  // namespace
}  // namespace tessera::proofs
