#include "pipeline/why_not.h"

#include <gmock/gmock.h>

#include "pipeline/testing/evaluated.h"

namespace tessera::pipeline {
namespace {

using evaluate::Tuned;
using kernel::Kind;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using tune::Outcome;

/// One work over one op, with its search's trials.
struct WhyNot : public ::testing::Test {
  testing::Evaluated e;
  Session& s = e.s;

  WhyNot() {
    e.work(0, 0);
    e.eager(0, 1);
    s.found.arch = *arch::find("host");
  }
  Tuned& tuned() { return *s.work[0].tuned; }
  /// A candidate that was tried; its index.
  int tried(const std::string& label, Outcome outcome, const std::string& reason,
            Kind kind = Kind::synthesized) {
    const int c = static_cast<int>(tuned().candidates.size());
    tuned().candidates.push_back({label, kind});
    tuned().trials.push_back({.point = {c, 0}, .outcome = outcome, .reason = reason});
    return c;
  }
  void tried_eager() {
    tried("library_aten aten", Outcome::measured, "", Kind::library);
    e.aten(0, 1);
    tuned().winners.back().candidate.realizer = "library_aten";
  }
  std::string why() { return why_not(s, choose_kernels(s), 0); }
};

TEST_F(WhyNot, FailuresAreCountedByGateWithTheCommonestReason) {
  tried_eager();
  for (const char* error : {"1.04e-06", "1.05e-06", "1.11e-06"}) {
    tried(std::string("wgmma_split_k ") + error, Outcome::wrong_result,
          std::string("relative RMS error ") + error + ", at most 1.02e-06 allowed");
  }
  tried("wgmma_gemm", Outcome::wrong_result, "overruns its output");
  tried("cutlass_gemm", Outcome::build_failed, "nvcc failed: no such file\nand a long log");
  EXPECT_EQ(fate_of_ours(s, s.work[0]),
            "no kernel that tessera writes passed its gates: 4 gave wrong results (3 as "
            "wgmma_split_k 1.04e-06: relative RMS error 1.04e-06, at most 1.02e-06 allowed), 1 did "
            "not build (cutlass_gemm: nvcc failed: no such file)");
  // A library's kernel won and saves nothing.
  EXPECT_THAT(why(), StartsWith("no gain: kernel 1 ms, eager ops 1 ms; its best kernel is a "
                                "library's, library_aten; no kernel that tessera writes passed"));
}

TEST_F(WhyNot, WhatDecidedIsOneReason) {
  tried_eager();
  tried("a", Outcome::crashed, "signal 11");
  const Chosen chosen = choose_kernels(s);
  EXPECT_EQ(what_decided(s, chosen, 0), "no gain: kernel 1 ms, eager ops 1 ms");
  e.options.only_kind = "synthesized";
  EXPECT_EQ(what_decided(s, choose_kernels(s), 0), fate_of_ours(s, s.work[0]));
  EXPECT_EQ(why(), fate_of_ours(s, s.work[0]));
}

TEST_F(WhyNot, ACandidateFailsOnceHoweverManyLaunchesItHas) {
  const int c = tried("tile_row", Outcome::measured, "");
  tuned().trials.push_back(
      {.point = {c, 1}, .outcome = Outcome::wrong_result, .reason = "rows 3 to 7 differ"});
  tuned().trials.push_back(
      {.point = {c, 2}, .outcome = Outcome::wrong_result, .reason = "rows 3 to 7 differ"});
  EXPECT_THAT(why(), HasSubstr("1 gave a wrong result (tile_row: rows 3 to 7 differ)"));
}

TEST_F(WhyNot, WhatWasNotVerifiedInFullIsSaid) {
  tried("a", Outcome::measured, "");
  tried("b", Outcome::measured, "");
  EXPECT_EQ(why(),
            "of the kernels that tessera writes 2 were measured and not verified in full before "
            "the search ended");
  tried("c", Outcome::crashed, "");
  EXPECT_THAT(why(), HasSubstr("1 crashed (c: no reason given), 2 were measured and not"));
}

TEST_F(WhyNot, WithAKernelOfOursNothingIsSaidOfTheOthers) {
  tried("a", Outcome::crashed, "signal 11");
  e.synthesized(0, 2);
  EXPECT_EQ(fate_of_ours(s, s.work[0]), "");
  EXPECT_EQ(why(), "no gain: kernel 2 ms, eager ops 1 ms");
}

TEST_F(WhyNot, WhereNoneWasOfferedTheRealizersSayWhyOnceAReason) {
  tried_eager();
  tuned().unsupported = {{"wgmma_gemm", Kind::synthesized, "host has no wgmma and TMA"},
                         {"cublaslt", Kind::library, "host has no CUDA"},
                         {"wgmma_split_k", Kind::synthesized, "host has no wgmma and TMA"}};
  EXPECT_THAT(why(), HasSubstr("tessera writes no kernel for it on host: wgmma_gemm, "
                               "wgmma_split_k: host has no wgmma and TMA"));
  EXPECT_THAT(why(), Not(HasSubstr("cublaslt")));
  tuned().pruned = {{"workspaces over 2 MB", 3}};
  EXPECT_THAT(why(), EndsWith("TMA; 3 left out: workspaces over 2 MB"));
}

TEST_F(WhyNot, WhereNoneWasReachedItSaysWhatEndedTheSearch) {
  tried_eager();
  tuned().candidates.push_back({"tile_row", Kind::synthesized});
  tuned().stopped_because = "budget of 3 s";
  tuned().cut = true;
  EXPECT_THAT(why(), EndsWith("tessera's own kernels for it, 1 of them, were not tried: budget of "
                              "3 s"));
  tuned().cut = false;
  EXPECT_THAT(why(), EndsWith("at the roofline they would save no more than other kernels do"));
  tuned().hopeless = 1;
  EXPECT_THAT(why(), EndsWith("by the model they cannot win"));
  s.work[0].rechecked = true;  // the candidates were not all that the realizers offer
  EXPECT_EQ(fate_of_ours(s, s.work[0]), "");
}

TEST_F(WhyNot, AnEarlierSearchsFailuresAreToldWithItsVerdict) {
  Work& w = s.work[0];
  w.tuned.reset();
  w.skipped = "an earlier search on this machine found no kernel for it: as thorough";
  w.own.emplace().negative = {
      {{"label", "a"}, {"kind", "synthesized"}, {"outcome", "crashed"}, {"reason", "signal 11"}},
      {{"label", "b"}, {"kind", "library"}, {"outcome", "crashed"}, {"reason", "signal 6"}}};
  EXPECT_EQ(why(), w.skipped +
                       "; no kernel that tessera writes passed its gates: 1 crashed (a: signal "
                       "11)");
}

TEST_F(WhyNot, ALibrarysAloneAreAskedFor) {
  tried("a", Outcome::crashed, "signal 11");
  e.options.only_kind = "library";
  EXPECT_EQ(why(), "no library kernel passed its gates");
  e.options.only_kind = "synthesized";
  EXPECT_THAT(why(), StartsWith("no kernel that tessera writes passed its gates: 1 crashed"));
}

TEST_F(WhyNot, OverlapsComeFirst) {
  e.work(0, 1);
  e.eager(1, 2);
  e.synthesized(1, 0.5);
  tried("a", Outcome::crashed, "signal 11");
  e.library(0, 0.9);
  EXPECT_THAT(why(), StartsWith("overlaps p1, which saves more by the times of both alone; its "
                                "best kernel is a library's"));
  EXPECT_EQ(why_not(s, Chosen{}, 1), "nothing is placed: the run was a search alone");
}

TEST_F(WhyNot, WhatWonBeforeAndIsNotTheFirstNowIsSaidWithItsFigures) {
  const auto stored = [](const char* realizer) {
    kernel::Winner w;
    w.candidate = {.realizer = realizer, .config = {{"tile", {64}}}};
    return w;
  };
  Work& w = s.work[0];
  w.own.emplace();
  w.own->winners = {stored("tile_row"), stored("tile_gemm"), stored("by_hand")};
  e.synthesized(0, 2);
  kernel::Winner& first = tuned().winners.front();
  first.candidate.realizer = "wgmma_gemm";
  first.evidence.sustained_ms = 1.5;
  tuned().winners.push_back(stored("by_hand"));
  tuned().winners.back().evidence.ms = 3;
  tried(stored("tile_row").candidate.label(), Outcome::crashed, "signal 11");
  auto passed = passed_over(w);
  ASSERT_EQ(passed.size(), 2U) << "other runner-ups are nobody's loss";
  EXPECT_EQ(passed[0].reason, "crashed: signal 11; wgmma_gemm: 2 ms a call, 1.5 ms back to back");
  EXPECT_THAT(passed[1].label, HasSubstr("by_hand"));
  EXPECT_THAT(passed[1].reason, StartsWith("3 ms a call; wgmma_gemm: 2 ms"));
  w.refined = true;
  EXPECT_THAT(passed_over(w)[1].reason, EndsWith("in the module's own run it is the fastest"));
  w.own->winners = {stored("tile_gemm")};
  EXPECT_THAT(passed_over(w)[0].reason, StartsWith("not timed in this run"));
  tuned().winners.front() = stored("tile_gemm");
  EXPECT_TRUE(passed_over(w).empty());
}

}  // namespace
}  // namespace tessera::pipeline
