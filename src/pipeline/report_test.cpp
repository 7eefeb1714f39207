#include "pipeline/report.h"

#include <gtest/gtest.h>

#include "pipeline/testing/evaluated.h"

namespace tessera::pipeline {
namespace {

std::vector<std::string> keys_of(const Json& j) {
  std::vector<std::string> out;
  for (const auto& [key, unused] : j.items()) out.push_back(key);
  return out;
}

/// Two works of one op each: the first has a kernel that is placed, the second one that loses.
struct Reported : public ::testing::Test {
  testing::Evaluated e;
  Results results;

  Reported() {
    e.s.found.arch = *arch::find("host");
    e.s.found.graph.name = "net";
    e.s.tools.device_name = "cpu";
    e.s.timings["evaluate"] = 2.5;
    e.work(0, 0);
    e.eager(0, 1);
    e.synthesized(0, 0.5);
    e.work(1, 1);
    e.eager(1, 1);
    e.synthesized(1, 2);
    e.s.found.discovery.rejections = {
        {.rule = "gemm", .nodes = {e.s.found.graph.order.at(2)}, .reason = "no product"}};
    e.s.found.rewrites = {{.what = "SiLU", .result = "op0", .nodes = {"op0", "op1"}}};
  }
  void settle() {
    Settled settled{.chosen = choose_kernels(e.s)};
    settled.plan = {.graph = &e.s.found.graph,
                    .target = {},
                    .steps = {},
                    .leftover = {{e.s.found.graph.order.at(3), "no rule takes it"}},
                    .leftover_runner = "inductor"};
    settled.decided = {.ways = Json::array(), .why = "it is faster", .chosen = 1};
    results.settled = std::move(settled);
    results.refinements = {{.pattern = "p0", .from = "a", .to = "b", .ms = 1, .than = 2}};
    results.verification.reply = {{"ok", true}, {"rewrites", {{"ok", true}}}};
    results.times = {{"times", Json::object()}};
  }
  Json json() { return to_json(make_report(e.s, results)); }
};

TEST_F(Reported, HasTheFieldsOfTheSchemaInTheirOrder) {
  settle();
  const Json report = json();
  EXPECT_EQ(
      keys_of(report),
      (std::vector<std::string>{
          "schema",          "name",     "device",        "arch",       "precision", "effort",
          "leftover_runner", "runner",   "settled",       "kind",       "toolchain", "torch",
          "peaks",           "rewrites", "patterns",      "rejections", "leftover",  "refinements",
          "verification",    "module",   "stage_seconds", "stopped"}));
  EXPECT_EQ(report["leftover_runner"], "inductor");
  EXPECT_EQ(report["settled"].dump(), R"({"ways":[],"why":"it is faster","chosen":1})");
  EXPECT_EQ(report["rewrites"].dump(), R"([{"what":"SiLU","result":"op0","nodes":["op0","op1"]}])");
  EXPECT_EQ(report["rejections"].dump(),
            R"([{"rule":"gemm","nodes":["op2"],"reason":"no product"}])");
  EXPECT_EQ(report["leftover"][0]["reason"], "no rule takes it");
  EXPECT_EQ(report["refinements"].dump(),
            R"([{"pattern":"p0","from":"a","to":"b","ms":1.0,"than":2.0}])");
  EXPECT_EQ(report["verification"].dump(), R"({"ok":true,"rewrites":{"ok":true},"dropped":[]})");
  EXPECT_EQ(report["stage_seconds"].dump(), R"({"evaluate":2.5})");
}

TEST_F(Reported, APatternSaysWhetherItIsActiveElseWhyNot) {
  settle();
  const Json patterns = json()["patterns"];
  EXPECT_EQ(patterns[0]["active"], true);
  EXPECT_FALSE(patterns[0].contains("inactive_because"));
  EXPECT_EQ(patterns[0]["winners"].size(), 1u);
  EXPECT_EQ(patterns[0]["eager_ms"], 1.0);
  EXPECT_EQ(patterns[1]["active"], false);
  EXPECT_EQ(patterns[1]["inactive_because"], "no gain: kernel 2 ms, eager ops 1 ms");
}

TEST_F(Reported, TheFirstPlaceOfAWorkTellsItsSearch) {
  e.also_at(0, 2);
  const Json patterns = json()["patterns"];
  EXPECT_TRUE(patterns[0].contains("tuning"));
  EXPECT_FALSE(patterns[2].contains("tuning"));
  EXPECT_EQ(patterns[2]["trial_count"], patterns[0]["trial_count"]);
}

TEST_F(Reported, ASearchAloneHasNoPlan) {
  const Json report = json();
  EXPECT_EQ(report["kind"], "none");
  EXPECT_EQ(report["runner"], "kernels");
  for (const char* field : {"settled", "verification", "module"})
    EXPECT_EQ(report[field].dump(), "{}") << field;
  EXPECT_TRUE(report["leftover"].empty());
}

TEST_F(Reported, WhatIsSaidOnlyWhereThereIsSome) {
  settle();
  e.s.baseline.ways = Json::array();
  results.settled->decided.measured = "2026-01-01";
  results.refinements.front().sustained_ms = 3;
  results.refinements.front().than_sustained = 4;
  results.verification.rewrites_off = {"norms"};
  results.verification.resizes = Json::array();
  e.options.checkpoints = {15};
  results.checkpoints = {{.seconds = 15, .variants = {}, .plan = {}, .why = "so"}};
  const Json report = json();
  EXPECT_EQ(report["settled"].dump(),
            R"({"baseline":[],"ways":[],"why":"it is faster","measured":"2026-01-01","chosen":1})");
  EXPECT_EQ(report["refinements"][0]["than_sustained"], 4.0);
  EXPECT_EQ(report["verification"].dump(),
            R"({"ok":true,"rewrites":{"ok":true,"off":["norms"]},"dropped":[],"resizes":[]})");
  EXPECT_EQ(report["checkpoints"].dump(), R"([{"seconds":15.0,"why":"so"}])");
}

TEST_F(Reported, WhichRatiosAreFiguresIsSaid) {
  const auto time = [](double ms) { return Json{{"ms", ms}, {"ci95", 0.01}, {"reliable", true}}; };
  results.times = {{"times", {{"tessera", time(1)}, {"eager", time(2)}, {"inductor", time(1.04)}}},
                   {"ablation", {time(1.98), time(1)}}};
  const auto of = [&](const char* peer) -> bool {
    return json()["module"]["times"][peer]["comparable"];
  };
  const auto part = [&](int i) -> bool { return json()["module"]["ablation"][i]["comparable"]; };
  EXPECT_TRUE(of("eager") && of("inductor") && part(0) && part(1));
  EXPECT_FALSE(json()["module"]["times"]["tessera"].contains("comparable"));
  results.times["elsewhere"] = 1e6;  // near ties under load
  EXPECT_TRUE(of("eager") && part(1));
  EXPECT_FALSE(of("inductor") || part(0));
  results.times["elsewhere"] = 0;
  results.times["times"]["eager"]["reliable"] = false;
  EXPECT_TRUE(of("inductor"));
  EXPECT_FALSE(of("eager") || part(1));
  EXPECT_EQ(json()["patterns"][0]["comparable"], true);
  kernel::Evidence& evidence = e.s.work[0].tuned->winners.front().evidence;
  evidence.ci95 = evidence.ms;
  EXPECT_EQ(json()["patterns"][0]["comparable"], false);
}

}  // namespace
}  // namespace tessera::pipeline
