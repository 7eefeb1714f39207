#include <gmock/gmock.h>
#include <set>

#include "pipeline/testing/evaluated.h"
#include "pipeline/why_not.h"

namespace tessera::pipeline {
namespace {

using ::testing::HasSubstr;

/// A tracer on which Inductor takes 10 ms and a plan what is written for its first kernel.
class Tracer : public bridge::Peer {
 public:
  std::map<std::string, double> ms;             // by the pattern's id
  std::vector<std::vector<std::string>> asked;  // the first kernels of each question's plans
  std::vector<double> compile_seconds;          // of each question
  std::vector<double> clock_seconds;
  std::set<std::string> compiled;  // first kernels of plans whose rest Inductor gets

  Result<Json> call(const std::string&, const Json& params, std::chrono::seconds) override {
    Json ways = Json::array();
    ways.push_back(way("inductor", nullptr, "", 10));
    asked.emplace_back();
    clock_seconds.push_back(params.at("seconds"));
    if (const Json& compile = params.at("compile"); !compile.is_null())
      compile_seconds.push_back(compile.at("seconds"));
    int index = 0;
    for (const Json& plan : params.at("plans")) {
      const std::string first = plan.at("plan").at("steps").at(0).at("pattern").at("id");
      asked.back().push_back(first);
      for (const std::string leftover : plan.at("leftovers")) {
        if (leftover == "inductor") compiled.insert(first);
        ways.push_back(way("kernels", index, leftover, ms.at(first)));
      }
      ++index;
    }
    return Json{{"ways", ways}};
  }
  void notify(const std::string&, const Json&) override {}
  void serve() override {}
  [[nodiscard]] bool alive() const override { return true; }
  [[nodiscard]] std::string epitaph() const override { return ""; }

 private:
  static Json way(const char* runner, const Json& plan, const std::string& leftover, double ms) {
    return {{"runner", runner}, {"plan", plan},   {"leftover", leftover}, {"seconds", 3},
            {"call_ms", ms},    {"call_ci95", 0}, {"back_ms", ms},        {"back_ci95", 0},
            {"peak_bytes", 0},  {"reason", ""}};
  }
};

/// p0 covers all that p1 covers and an op more; p1 saves more by the clock of single kernels.
struct StageSettle : public ::testing::Test {
  testing::Evaluated e;
  Session& s = e.s;
  Tracer tracer;

  StageSettle() {
    s.found.arch = *arch::find("host");
    e.options.use_registry = false;
    e.work(0, 2);
    e.work(0, 1);
    e.eager(0, 20);
    e.eager(1, 20);
    e.synthesized(0, 3);
    e.synthesized(1, 2);
  }
  Settled settled() {
    auto out = settle_plan(s, tracer, choose_kernels(s), {.left_seconds = 60});
    EXPECT_TRUE(out) << to_text(out.error());
    return *out;
  }
  std::string why(const Settled& done, int pattern) {
    return what_decided(s, done.chosen, pattern);
  }
};

/// Of what a call may allocate, a kernel's results take a part, and what it reads that another op
/// made: each is 16 bytes here.
TEST(WorkspaceLimit, IsWhatTheOperandsAndResultsOfEveryPlaceLeave) {
  testing::Evaluated e;
  const std::size_t first = e.work(0, 0), second = e.work(1, 1);
  EXPECT_EQ(workspace_limit(e.s, e.s.work[first]), std::nullopt);
  e.s.baseline.call_bytes = 100;
  EXPECT_EQ(workspace_limit(e.s, e.s.work[first]), 84);
  EXPECT_EQ(workspace_limit(e.s, e.s.work[second]), 68);
  e.also_at(first, 2);
  EXPECT_EQ(workspace_limit(e.s, e.s.work[first]), 68);
  e.s.baseline.call_bytes = 20;
  EXPECT_EQ(workspace_limit(e.s, e.s.work[second]), 0);
}

/// Without kernels there is nothing to time anew, where PyTorch's ways are surely apart.
TEST(StageSettleOfNothing, WhatTheBaselineDecidesIsNotTimedAgain) {
  for (const double eager_ms : {11.0, 10.2}) {
    testing::Evaluated e;
    Tracer tracer;
    e.s.found.arch = *arch::find("host");
    e.options.use_registry = false;
    e.work(0, 2);
    e.eager(0, 20);
    e.s.baseline.ways =
        Json::array({{{"runner", "eager"}, {"call_ms", eager_ms}, {"back_ms", eager_ms}},
                     {{"runner", "inductor"}, {"call_ms", 10}, {"back_ms", 10}}});
    const auto out = settle_plan(e.s, tracer, choose_kernels(e.s), {.left_seconds = 60});
    ASSERT_TRUE(out) << to_text(out.error());
    EXPECT_EQ(out->plan.runner, "inductor");
    EXPECT_EQ(tracer.asked.size(), eager_ms > 10.5 ? 0U : 1U);
    EXPECT_FALSE(out->decided.why.empty());
  }
}

TEST_F(StageSettle, ClocksTakeATenthOfAShortSearch) {
  tracer.ms = {{"p0", 12}, {"p1", 4}};
  for (const auto& [seconds, spent, clocks] :
       {std::tuple{0, 0, 2.0}, {60, 0, 2.0}, {10, 0, 1.0}, {10, 8, 0.5}}) {
    e.options.seconds = seconds;
    e.options.spent = spent;
    settled();
    EXPECT_EQ(tracer.clock_seconds.back(), clocks) << seconds << " " << spent;
  }
}

TEST_F(StageSettle, WhereTheChoiceLosesTheOverlappingWinnerGetsInductorToo) {
  tracer.ms = {{"p0", 4}, {"p1", 12}};
  const Settled done = settled();
  EXPECT_EQ(tracer.asked, (std::vector<std::vector<std::string>>{{"p0", "p1"}, {"p0", "p1"}}));
  EXPECT_TRUE(done.plan.runs_kernels());
  EXPECT_EQ(done.chosen.choice.chosen, std::vector<int>{0});
  EXPECT_EQ(why(done, 1), "overlaps p0, with which the whole module is faster");
  EXPECT_EQ(done.decided.ways.size(), 5U);
}

/// p0 saves less by the clock of single kernels, clearly; the module is faster with it all the
/// same, and the choice beats PyTorch.
TEST_F(StageSettle, TheClockOfSingleKernelsDoesNotDecide) {
  tracer.ms = {{"p0", 4}, {"p1", 5}};
  const Settled done = settled();
  EXPECT_EQ(tracer.asked.front(), (std::vector<std::string>{"p0", "p1"}));
  EXPECT_EQ(done.chosen.choice.chosen, std::vector<int>{0});
  EXPECT_EQ(why(done, 1), "overlaps p0, with which the whole module is faster");
}

TEST_F(StageSettle, AChoiceThatWinsCompilesNoRestOfAnother) {
  tracer.ms = {{"p0", 5}, {"p1", 4}};
  const Settled done = settled();
  EXPECT_EQ(tracer.asked.size(), 1U);
  EXPECT_EQ(tracer.compiled, std::set<std::string>{"p1"});
  EXPECT_EQ(done.chosen.choice.chosen, std::vector<int>{1});
  EXPECT_EQ(why(done, 0), "overlaps p1, with which the whole module is faster");
}

TEST_F(StageSettle, WithinTheirSpreadBothAreTimedAtOnce) {
  s.work[0].tuned->winners[0].evidence.ms = 2.1;
  tracer.ms = {{"p0", 4}, {"p1", 5}};
  const Settled done = settled();
  EXPECT_EQ(tracer.asked, (std::vector<std::vector<std::string>>{{"p0", "p1"}}));
  EXPECT_EQ(done.chosen.choice.chosen, std::vector<int>{0});
}

TEST_F(StageSettle, WhereAllLoseEachSaysWhatItCameTo) {
  tracer.ms = {{"p0", 11}, {"p1", 12}};
  const Settled done = settled();
  EXPECT_FALSE(done.plan.runs_kernels());
  EXPECT_THAT(why(done, 0), HasSubstr("in place of p1 it was timed on the whole module: the whole "
                                      "module is faster by inductor"));
  EXPECT_THAT(why(done, 1), HasSubstr("the whole module is faster by inductor"));
}

TEST_F(StageSettle, InductorCompilesTheRestsOfTwoPlansAtMost) {
  e.work(0, 3);
  e.eager(2, 20);
  e.synthesized(2, 4);
  tracer.ms = {{"p0", 11}, {"p1", 12}, {"p2", 5}};
  const Settled done = settled();
  EXPECT_EQ(tracer.asked.back().size(), 3U);
  EXPECT_EQ(tracer.compiled, (std::set<std::string>{"p0", "p1"}));
  EXPECT_EQ(done.chosen.choice.chosen, std::vector<int>{2});  // with eager for the rest
}

TEST_F(StageSettle, AlternativesCompileWithinTheSecondsThatAreLeft) {
  e.options.seconds = 30;
  tracer.ms = {{"p0", 4}, {"p1", 12}};
  settled();
  EXPECT_EQ(tracer.compile_seconds, (std::vector<double>{60, 57}));
}

}  // namespace
}  // namespace tessera::pipeline
