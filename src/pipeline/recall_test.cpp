#include "pipeline/recall.h"

#include <gtest/gtest.h>

namespace tessera::pipeline {
namespace {

Json way(double call_ci95, double back_ci95) {
  return {{"runner", "eager"},
          {"call_ms", 1.0},
          {"call_ci95", call_ci95},
          {"back_ms", 1.0},
          {"back_ci95", back_ci95}};
}

bool kept(const Json& answer) {
  return why_not_kept(answer, true).empty();
}

TEST(Recall, KeepsWaysOfAQuietMachineThatAllRan) {
  EXPECT_TRUE(kept({{"ways", {way(0.01, 0.05), way(0.02, 0.01)}}}));
  EXPECT_FALSE(kept({{"ways", {way(0.01, 0.06), way(0.02, 0.01)}}}));
  EXPECT_FALSE(kept({{"ways", {way(0.06, 0.01)}}}));
  Json failed = way(0.01, 0.01);
  failed["reason"] = "Inductor would take about 30 s for it";
  EXPECT_FALSE(kept({{"ways", {way(0.01, 0.01), failed}}}));
  failed["no_time"] = true;
  EXPECT_TRUE(kept({{"ways", {way(0.01, 0.01), failed}}}));
  EXPECT_FALSE(kept({{"ways", Json::array()}}));
  EXPECT_FALSE(kept({{"ways", {way(0.01, 0.01), {{"runner", "inductor"}}}}}));
}

TEST(Recall, NoiseOfAWayThatIsSurelySlowerDoesNotMatter) {
  Json slow = way(0.2, 0.01), fast = way(0.01, 0.01);
  slow["call_ms"] = slow["back_ms"] = 1.4;
  EXPECT_TRUE(kept({{"ways", {slow, fast}}}));
  slow["call_ci95"] = 0.5;  // may be as fast
  EXPECT_EQ(why_not_kept({{"ways", {slow, fast}}}, true), "eager is known to 36 %");
  slow["call_ci95"] = 0.2;
  slow["back_ms"] = 0.9;  // ahead in one measure
  EXPECT_FALSE(kept({{"ways", {slow, fast}}}));
  slow["back_ms"] = 1.4;
  fast["call_ci95"] = 0.1;  // nothing is known to be faster
  EXPECT_FALSE(kept({{"ways", {slow, fast}}}));
}

TEST(Recall, NoiseThatNobodyElseMadeIsTheMachines) {
  const Json answer = {{"ways", {way(0.06, 0.01), way(0.02, 0.01)}}};
  EXPECT_EQ(why_not_kept(answer, true), "eager is known to 6 %");
  EXPECT_EQ(why_not_kept(answer, false), "");
  Json failed = way(0.01, 0.01);
  failed["reason"] = "out of memory";
  EXPECT_NE(why_not_kept({{"ways", {failed}}}, false), "");
}

TEST(Recall, WhatIsKnownOfAKernelDoesNotChangeItsTime) {
  const auto plan = [](double ms, const char* library, const char* runner) -> Json {
    const Json pattern = {{"id", "p01"}, {"signature", "row_norm"}, {"reuse", ms}};
    const Json step = {{"pattern", pattern},
                       {"kind", "kernel"},
                       {"candidate", {{"library", library}}},
                       {"evidence", {{"ms", ms}}}};
    return {{"steps", {step}}, {"runner", runner}, {"leftover", {{{"reason", ms}}}}};
  };
  const Json timed = timed_part(plan(1, "a.so", "kernels"));
  EXPECT_EQ(timed, timed_part(plan(2, "a.so", "kernels")));
  EXPECT_NE(timed, timed_part(plan(1, "b.so", "kernels")));
  EXPECT_NE(timed, timed_part(plan(1, "a.so", "eager")));
}

TEST(Recall, KeepsTimesOfEveryPeer) {
  const Json quiet = {{"ms", 1.0}, {"ci95", 0.05}};
  const Json noisy = {{"ms", 1.0}, {"ci95", 0.06}};
  EXPECT_TRUE(kept({{"times", {{"tessera", quiet}, {"eager", quiet}}}}));
  EXPECT_FALSE(kept({{"times", {{"tessera", quiet}, {"eager", noisy}}}}));
  EXPECT_FALSE(
      kept({{"times", {{"tessera", quiet}}}, {"absent", {{"inductor", "no compiler was found"}}}}));
  EXPECT_TRUE(kept({{"times", Json::array({quiet, quiet})}}));
  EXPECT_FALSE(kept({{"times", Json::array({quiet, {{"reason", "a plan that failed"}}})}}));
}

class Recalling : public ::testing::Test {
 protected:
  std::filesystem::path folder_ = std::filesystem::path(::testing::TempDir()) / "recall" /
                                  ::testing::UnitTest::GetInstance()->current_test_info()->name();
  Json circumstances_ = {{"flags", 1}};
  Json answer_ = {{"times", {{"tessera", {{"ms", 1.0}, {"ci95", 0.01}}}}}};
  int asked_ = 0;

  void SetUp() override { std::filesystem::remove_all(folder_); }
  Json ask(const Json& plan, const Options& options = {}, bool stop = false) {
    const std::atomic<bool> stopped{stop};
    const Context context{.stop = &stopped};
    Session s{.options = options, .context = context};
    s.tools.evaluation.log_folder = folder_ / "logs";
    s.found.graph.meta = {{"circumstances", circumstances_}};
    const Answerer count = [&](const Json& request) -> Result<Json> {
      EXPECT_EQ(request, Json({{"plan", plan}, {"seconds", 10}}));
      ++asked_;
      return answer_;
    };
    return *ask_or_recall(s, count,
                          {.method = "measure_module",
                           .request = {{"plan", plan}, {"seconds", 10}},
                           .about = {{"plan", plan}},
                           .limit = std::chrono::seconds(1),
                           .within = options.seconds});
  }
};

TEST_F(Recalling, TheSameQuestionIsAskedOnce) {
  EXPECT_FALSE(ask("a").contains("measured"));
  Json again = ask("a");
  EXPECT_EQ(again.at("measured").get<std::string>().size(), 20U);
  again.erase("measured");
  EXPECT_GE(again.at("elsewhere").get<double>(), 0);
  again.erase("elsewhere");
  EXPECT_EQ(again, answer_);
  EXPECT_EQ(asked_, 1);
  ask("another plan");
  EXPECT_EQ(asked_, 2);
  circumstances_["flags"] = 2;
  ask("a");
  EXPECT_EQ(asked_, 3);
}

TEST_F(Recalling, AWayThatHadNoTimeIsOfSearchesOfAsManySeconds) {
  Json refused = way(0, 0);
  refused["no_time"] = true;
  answer_ = {{"ways", {way(0.01, 0.01), refused}}};
  ask("a", {.seconds = 60});
  ask("a", {.seconds = 60});
  EXPECT_EQ(asked_, 1);
  ask("a", {.seconds = 120});
  ask("a");
  EXPECT_EQ(asked_, 3);
  answer_ = {{"ways", {way(0.01, 0.01), way(0.01, 0.01)}}};
  ask("a", {.seconds = 240});
  ask("a", {.seconds = 300});
  EXPECT_EQ(asked_, 4) << "where every way was timed the seconds do not matter";
}

TEST_F(Recalling, WhoWantsItMeasuredIsNotToldWhatWas) {
  ask("a");
  ask("a", {.retune = true});
  ask("a", {.use_registry = false});
  EXPECT_EQ(asked_, 3);
}

TEST_F(Recalling, NoiseAndRunsThatWereStoppedAreNotKept) {
  ask("a", {}, true);
  answer_["times"]["tessera"]["ci95"] = 0.2;
  ask("a");
  ask("a");
  EXPECT_EQ(asked_, 3);
}

}  // namespace
}  // namespace tessera::pipeline
