#include <gtest/gtest.h>

#include "pipeline/testing/evaluated.h"

namespace tessera::pipeline {
namespace {

/// A tracer on whose clock the module is the faster the later a plan stands.
class Tracer : public bridge::Peer {
 public:
  Result<Json> call(const std::string& method, const Json& params, std::chrono::seconds) override {
    EXPECT_EQ(method, "compare_plans");
    Json times = Json::array();
    double ms = 10;
    for (std::size_t i = 0; i < params.at("plans").size(); ++i)
      times.push_back({{"ms", ms--}, {"ci95", 0.01}, {"reason", ""}});
    return Json{{"times", times}};
  }
  void notify(const std::string&, const Json&) override {}
  void serve() override {}
  [[nodiscard]] bool alive() const override { return true; }
  [[nodiscard]] std::string epitaph() const override { return ""; }
};

struct StageRefine : public ::testing::Test {
  testing::Evaluated e;
  Session& s = e.s;
  Tracer tracer;

  StageRefine() {
    s.found.arch = *arch::find("host");
    e.options.use_registry = false;
    e.work(0, 2);
    e.eager(0, 20);
    e.synthesized(0, 3);
    s.work[0].tuned->trials.emplace_back();  // searched now, not reused
  }
  Refined refined() {
    auto out = refine_plan(s, tracer, choose_kernels(s));
    EXPECT_TRUE(out) << to_text(out.error());
    return *out;
  }
};

TEST_F(StageRefine, AWinnerWithoutRunnerUpsStays) {
  const Refined done = refined();
  EXPECT_TRUE(done.exchanged.empty());
  EXPECT_EQ(done.chosen.choice.chosen, std::vector<int>{0});
}

TEST_F(StageRefine, TheChoiceIsTheOneOfARunThatFindsTheExchangedWinner) {
  e.synthesized(0, 3.1);
  s.work[0].tuned->winners[1].evidence.ci95 = 0.4;
  const Refined done = refined();
  ASSERT_EQ(done.exchanged.size(), 1U);
  EXPECT_EQ(done.exchanged[0].ms, 9);
  EXPECT_EQ(done.chosen.options[0].ci95, 0.4);
  EXPECT_EQ(done.chosen.options[0].ci95, choose_kernels(s).options[0].ci95);
}

TEST_F(StageRefine, WhatIsExchangedForPyTorchsOwnOpsIsNotPlaced) {
  e.eager(0, 3.1);
  e.synthesized(0, 3);
  e.aten(0, 3.1);
  s.work[0].tuned->trials.emplace_back();
  ASSERT_EQ(choose_kernels(s).choice.chosen, std::vector<int>{0});
  const Refined done = refined();
  ASSERT_EQ(done.exchanged.size(), 1U);
  EXPECT_TRUE(done.chosen.choice.chosen.empty());
}

}  // namespace
}  // namespace tessera::pipeline
