#include "pipeline/recall.h"

#include <gtest/gtest.h>

namespace tessera::pipeline {
namespace {

Json way(double call_ci95, double back_ci95) {
  return {{"call_ms", 1.0}, {"call_ci95", call_ci95}, {"back_ms", 1.0}, {"back_ci95", back_ci95}};
}

TEST(Recall, KeepsWaysOfAQuietMachineThatAllRan) {
  EXPECT_TRUE(worth_keeping({{"ways", {way(0.01, 0.05), way(0.02, 0.01)}}}));
  EXPECT_FALSE(worth_keeping({{"ways", {way(0.01, 0.06), way(0.02, 0.01)}}}));
  EXPECT_FALSE(worth_keeping({{"ways", {way(0.06, 0.01)}}}));
  Json failed = way(0.01, 0.01);
  failed["reason"] = "Inductor would take about 30 s for it";
  EXPECT_FALSE(worth_keeping({{"ways", {way(0.01, 0.01), failed}}}));
  EXPECT_FALSE(worth_keeping({{"ways", Json::array()}}));
}

TEST(Recall, KeepsTimesOfEveryPeer) {
  const Json quiet = {{"ms", 1.0}, {"ci95", 0.05}};
  const Json noisy = {{"ms", 1.0}, {"ci95", 0.06}};
  EXPECT_TRUE(worth_keeping({{"times", {{"tessera", quiet}, {"eager", quiet}}}}));
  EXPECT_FALSE(worth_keeping({{"times", {{"tessera", quiet}, {"eager", noisy}}}}));
  EXPECT_FALSE(worth_keeping(
      {{"times", {{"tessera", quiet}}}, {"absent", {{"inductor", "no compiler was found"}}}}));
  EXPECT_TRUE(worth_keeping({{"times", Json::array({quiet, quiet})}}));
  EXPECT_FALSE(
      worth_keeping({{"times", Json::array({quiet, {{"reason", "a plan that failed"}}})}}));
}

}  // namespace
}  // namespace tessera::pipeline
