#include <gtest/gtest.h>

#include "base/text.h"
#include "commands/common/optimizing.h"

namespace tessera::commands {
namespace {

Json example() {
  const Json evidence = {{"ms", 12.3456}};
  const Json winner = {{"label",
                        "tile_gemm 128x128x64 simd 2 threads, a long list of decisions that "
                        "would never fit in a line of a table"},
                       {"kind", "synthesized"},
                       {"evidence", evidence}};
  Json patterns = Json::array();
  patterns.push_back(
      {{"id", "p01"},
       {"rule", "gated_mlp"},
       {"active", true},
       {"summary", "65536x14336x4096 bf16, silu(gate) * up, + residual, scaled, cast"},
       {"eager_ms", 24.7},
       {"floor_ms", 9.1},
       {"winners", Json::array({winner})}});
  patterns.push_back({{"id", "p02"},
                      {"rule", "row_norm"},
                      {"active", false},
                      {"winners", Json::array()},
                      {"inactive_because", std::string(30, 'w') + " " + std::string(60, 'v')}});
  Json leftover = Json::array();
  for (const char* node : {"cumsum", "cumsum_1", "cumsum_2"}) {
    leftover.push_back({{"node", node}, {"op", "aten.cumsum.default"}, {"reason", "no rule"}});
  }
  const Json resizes = {{{"size", "batch (dim 0: 8 → 4)"},
                         {"ok", true},
                         {"kernels", 4},
                         {"of", 5},
                         {"rms_error", 1e-7},
                         {"baseline_rms_error", 2e-7},
                         {"reason", "the time for other sizes was spent"}},
                        {{"size", "sequence (dim 1: 32 → 24)"},
                         {"ok", nullptr},
                         {"reason", "the module does not take it: RuntimeError"}}};
  return {
      {"name", "Block"},
      {"device", "NVIDIA H200"},
      {"arch", "sm_90a"},
      {"precision", "bf16"},
      {"rewrites", Json::array()},
      {"patterns", patterns},
      {"leftover", leftover},
      {"rejections",
       {{{"rule", "attention"}, {"nodes", {"a", "b", "c", "d", "e", "f", "g"}}, {"reason", "no"}}}},
      {"verification",
       {{"ok", true}, {"rms_error", 1e-7}, {"baseline_rms_error", 1e-7}, {"resizes", resizes}}},
      {"module",
       {{"times", {{"tessera", {{"ms", 1.0}}}, {"eager", {{"ms", 2.5}}}}},
        {"absent", {{"tensorrt", "torch_tensorrt is not installed"}}}}}};
}

TEST(ReportText, FitsIn80Columns) {
  for (const std::string& line : split(report_text(example()), '\n')) {
    std::size_t columns = 0;
    for (const char c : line) columns += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
    EXPECT_LE(columns, 80U) << line;
  }
}

TEST(ReportText, SaysWhatCounts) {
  const std::string text = report_text(example());
  const auto has = [&](const char* words) { return text.find(words) != std::string::npos; };
  EXPECT_TRUE(has("12.35       24.7        9.1   2.00x")) << text;
  EXPECT_TRUE(has("aten.cumsum.default (cumsum, 3 places): no rule")) << text;
  EXPECT_TRUE(has("a, b, c, d, e, f, ... (7 ops)")) << text;
  EXPECT_TRUE(has("dim 0: 8 → 4): right; kernels: 4, as traced 5")) << text;
  EXPECT_TRUE(has("24): not verified: the module")) << text;
  EXPECT_TRUE(has("2.50x")) << text;
  EXPECT_FALSE(has("not reliable")) << text;
}

TEST(ReportText, WhereNoKernelIsPlacedItSaysWhoRunsTheModule) {
  EXPECT_EQ(report_text(example()).find("no kernel placed"), std::string::npos);
  Json report = example();
  for (Json& p : report["patterns"]) p["active"] = false;
  report["runner"] = "inductor";
  report["verification"] = {{"ok", true}, {"form", "none: PyTorch runs the module"}};
  const std::string text = report_text(report);
  EXPECT_NE(text.find("bf16\nno kernel placed: Inductor runs the module\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("tessera: inductor"), std::string::npos) << text;
  EXPECT_NE(text.find("nothing to verify: no kernel of tessera runs"), std::string::npos) << text;
  EXPECT_EQ(text.find("right"), std::string::npos) << text;
  report["runner"] = "kernels";
  EXPECT_NE(report_text(report).find("no kernel placed: PyTorch, eagerly, runs"),
            std::string::npos);
}

TEST(ReportText, SaysWhatTheSecondsWentInto) {
  Json report = example();
  report["stage_seconds"] = {{"tools", 0.1},
                             {"evaluate", 20.0},
                             {"baseline", 60.0},
                             {"settle", 30.0},
                             {"measure_module", 100.0}};
  const std::string text = replace_all(report_text(report), "\n  ", " ");
  EXPECT_NE(text.find("210.1 s: search 20.0 s; the rest, which --seconds does not limit: measuring "
                      "the module 100.0 s, PyTorch's own ways 60.0 s, every way beside the others "
                      "30.0 s\n"),
            std::string::npos)
      << text;
  for (const std::string& line : split(report_text(report), '\n')) EXPECT_LE(line.size(), 90U);
}

TEST(ReportText, SaysWhenTimesWereTaken) {
  Json report = example();
  report["module"]["measured"] = "2026-01-02T03:04:05Z";
  const std::string text = report_text(report);
  EXPECT_NE(text.find("measured at 2026-01-02T03:04:05Z"), std::string::npos) << text;
}

TEST(ReportText, SaysWhichTimesNoComparisonCanRestOn) {
  Json report = example();
  report["module"]["times"]["eager"]["reliable"] = false;
  const std::string text = report_text(report);
  EXPECT_NE(text.find("not reliable: eager: other work ran"), std::string::npos) << text;
}

TEST(ReportText, NoRatioIsPrintedThatIsNotKnown) {
  Json report = example();
  Json& module = report["module"];
  module["times"] = {{"tessera", {{"ms", 1.0}, {"ci95", 0.01}}},
                     {"eager", {{"ms", 2.5}, {"ci95", 0.01}}},
                     {"inductor", {{"ms", 1.04}, {"ci95", 0.01}}}};
  module["ablation"] = {{{"name", "only p01"}, {"ms", 2.45}, {"ci95", 0.01}, {"speedup", 1.02}}};
  const auto has = [&](const char* words) {
    return replace_all(report_text(report), "\n  ", " ").find(words) != std::string::npos;
  };
  EXPECT_TRUE(has("1.04x") && has("2.50x") && has("1.02x") && !has("not reliable"));
  module["times"]["inductor"]["comparable"] = false;
  module["ablation"][0]["comparable"] = false;
  EXPECT_TRUE(has("2.50x"));
  EXPECT_FALSE(has("1.04x") || has("1.02x"));
  EXPECT_TRUE(has("not reliable: inductor: other work ran"));
  module["times"]["eager"]["comparable"] = false;
  module["times"]["tessera"]["reliable"] = false;
  EXPECT_TRUE(has("not reliable: tessera: other work ran"));
  EXPECT_FALSE(has("2.50x"));
  EXPECT_TRUE(has("2.00x")) << "of a pattern";
  report["patterns"][0]["comparable"] = false;
  EXPECT_FALSE(has("2.00x"));
  EXPECT_TRUE(has("noisy"));
}

TEST(ReportText, WhatWasPassedOverHasItsReason) {
  Json report = example();
  const std::string why = "eager: 1 ms a call; kernels with eager for the rest is at 0.9";
  report["settled"] = {{"why", why}};
  report["patterns"][0]["passed_over"] = {
      {{"label", "by_hand k.cpp"}, {"reason", "2 ms a call; tile_gemm: 1 ms a call"}}};
  report["patterns"][1]["inactive_because"] = "the whole module is faster by eager: " + why;
  report["refinements"] = {
      {{"pattern", "p01"}, {"from", "a"}, {"to", "b"}, {"ms", 1.5}, {"than", 1.75}}};
  const std::string text =
      replace_all(replace_all(report_text(report), "\n       ", " "), "\n  ", " ");
  const auto has = [&](const std::string& words) { return text.find(words) != std::string::npos; };
  EXPECT_TRUE(has("passed over: by_hand k.cpp: 2 ms a call; tile_gemm: 1 ms a call")) << text;
  EXPECT_TRUE(has("not active: the whole module is faster by eager: as `settled` says")) << text;
  EXPECT_TRUE(has("p01: in the module's own run b is faster than a: 1.5 ms against 1.75")) << text;
  EXPECT_TRUE(has("settled: " + why)) << text;
  EXPECT_EQ(text.find(why), text.rfind(why)) << "once";
}

}  // namespace
}  // namespace tessera::commands
