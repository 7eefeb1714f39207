#include "attempt/verdict.h"

#include <fstream>
#include <gtest/gtest.h>

#include "base/files.h"

#include "attempt/source.h"
#include "attempt/symptoms.h"

namespace tessera::attempt {
namespace {

/// An entry of `depends`, of tensor 1.
Json depends(int dim, Json weight) {
  return {{"tensor", 1},
          {"dim", dim},
          {"first", 2},
          {"last", 3},
          {"weight", std::move(weight)},
          {"text", "depends on t1, and must not"}};
}

Verdict whole() {
  Verdict v{.source = "k.cpp", .hash = "ab", .language = "cxx", .pattern = "p01", .rule = "gemm"};
  v.gates = {{.gate = Gate::parse, .seconds = 0.5},
             {.gate = Gate::check, .passage = Passage::skipped, .note = "no tile language"},
             {.gate = Gate::verify, .passage = Passage::failed}};
  v.failure = Failure::wrong_result;
  v.cause = "relative RMS error 1";
  v.place = {.file = "k.cpp", .line = 7, .column = 2};
  v.diagnostics = {fail(Code{"TS0303", "build.compile_failed"}, "it does not compile")};
  v.wrong = Wrong{.output = "y",
                  .shape = {4, 8},
                  .index = {3, 0},
                  .expected = "1",
                  .found = "nan",
                  .count = 8,
                  .of = 32,
                  .lies = "tail of rows",
                  .box = {{3, 3}, {0, 7}},
                  .details = "the last 1 of dim 0",
                  .relation = "",
                  .depends = Json::array({depends(1, nullptr)}),
                  .inputs = "normal"};
  v.warnings = {"source.cpp:3: warning"};
  v.measured = Measured{.ms = 2,
                        .ci95 = 0.1,
                        .sustained_ms = 1.5,
                        .floor_ms = 0.5,
                        .bound = "memory",
                        .peers = {{.name = "eager", .ms = 1}}};
  v.variants = {{.tunables = {{"TILE", 8}}, .outcome = "measured", .ms = 2}};
  v.advice = {{.symptom = "s", .cause = "c", .where = "w", .remedy = "r"}};
  return v;
}

std::vector<std::string> symptoms_of(const Verdict& v) {
  std::vector<std::string> out;
  for (const Advice& a : advice_for(v)) out.push_back(a.symptom);
  return out;
}

Result<SourceFile> read(const std::string& name, const std::string& text) {
  const TemporaryFolder folder;
  write_file_atomically(folder.path() / name, text);
  return read_source((folder.path() / name).string());
}

TEST(Verdict, ReadsBackAsItWasWritten) {
  const Json j = to_json(whole());
  EXPECT_EQ(to_json(verdict_from_json(j)), j);
  EXPECT_EQ(j.at("failure"), "wrong_result");
  EXPECT_EQ(j.at("reached"), "verify");
  EXPECT_FALSE(j.at("passed").get<bool>());
  EXPECT_EQ(j.at("measured").at("share_of_roofline"), 0.25);
}

TEST(Verdict, EveryFailureHasAWordThatReadsBack) {
  for (int f = 0; f <= static_cast<int>(Failure::unsupported); ++f) {
    Verdict v = whole();
    v.failure = static_cast<Failure>(f);
    EXPECT_EQ(verdict_from_json(to_json(v)).failure, v.failure) << name_of(v.failure);
  }
  Json j = to_json(whole());
  j["failure"] = "mistaken";
  EXPECT_THROW(verdict_from_json(j), std::invalid_argument);
}

TEST(Verdict, ForPeopleNamesLineElementAndWhatToDo) {
  const std::string text = to_text(whole());
  for (const char* part : {"k.cpp:7: relative RMS error 1", "y[3, 0] expected 1, found nan",
                           "8 of 32 are wrong: the last 1 of dim 0",
                           "it depends on t1, and must not", "0.50x of eager", "do: r"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(Verdict, ATimeThatCannotBeReliedOnIsSaidToBeSo) {
  Verdict v = whole();
  const std::string words = "not reliable: other work ran on this machine";
  EXPECT_EQ(to_text(v).find(words), std::string::npos);
  v.measured->unreliable = true;
  EXPECT_NE(to_text(v).find(words), std::string::npos);
}

TEST(Verdict, NoRatioIsPrintedThatIsNotKnown) {
  Verdict v;
  v.measured = Measured{.ms = 1, .ci95 = 0.01};
  v.measured->peers = {{.name = "eager", .ms = 2.5, .ci95 = 0.01},
                       {.name = "inductor", .ms = 1.04, .ci95 = 0.01}};
  const auto has = [&](const char* words) { return to_text(v).find(words) != std::string::npos; };
  EXPECT_TRUE(has("2.50x of eager") && has("1.04x of inductor"));
  v.measured->elsewhere = 1e6;
  EXPECT_TRUE(has("2.50x of eager"));
  EXPECT_FALSE(has("1.04x"));
  EXPECT_TRUE(has("inductor: 1.04 ms +- 0.01; how it compares is not reliable"));
  v.measured->elsewhere = 0;
  v.measured->peers[1].unreliable = true;
  EXPECT_FALSE(has("1.04x"));
  v.measured->unreliable = true;
  EXPECT_FALSE(has("2.50x"));
}

TEST(Verdict, ErrorsAndSpreadsAreSaid) {
  Verdict v = whole();
  v.errors = {{"rms_error", 1.25e-7},
              {"max_error", 3e-6},
              {"baseline_rms_error", 1e-7},
              {"baseline_max_error", 2e-6},
              {"budget", {{"rms", 2e-7}, {"max", 8e-6}}}};
  v.measured->peers = {{.name = "eager", .ms = 2, .ci95 = 0.25, .unreliable = true}};
  v.measured->elsewhere = 1e6;
  v.measured->busy = {"cc1plus (pid 7, 1.9 processors)"};
  const std::string text = to_text(v);
  for (const char* part :
       {"rms 1.25e-07 (eager 1e-07, 2e-07 is allowed)", "greatest 3e-06 (eager 2e-06, 8e-06 is",
        "eager: 2 ms +- 0.25; how it compares is not reliable",
        "most of all cc1plus (pid 7, 1.9 processors)"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_EQ(to_json(verdict_from_json(to_json(v))), to_json(v));
}

TEST(Symptom, TheMostTellingComeFirstAndThreeAtMost) {
  Verdict v = whole();
  v.wrong->depends = Json::array();
  EXPECT_EQ(symptoms_of(v).front(), "part of the end is missing or wrong");
  EXPECT_LE(symptoms_of(v).size(), 3U);
  v.wrong->relation = "transposed";
  EXPECT_EQ(symptoms_of(v).front(), "the result is transposed");
}

TEST(Symptom, FarFromTheRooflineWithTunablesAndWithout) {
  Verdict v;
  v.measured = Measured{.ms = 1, .floor_ms = 0.4, .bound = "memory"};
  EXPECT_EQ(symptoms_of(v), std::vector<std::string>{"far from the memory's rate"});
  v.measured->bound = "arithmetic";
  EXPECT_EQ(symptoms_of(v), std::vector<std::string>{"far from the arithmetic's rate"});
  v.variants = {Variant{}, Variant{}};
  EXPECT_EQ(symptoms_of(v),
            std::vector<std::string>{"far from the roofline with all choices of tunables"});
  v.measured->floor_ms = 0.6;
  EXPECT_TRUE(symptoms_of(v).empty());
  v.measured = Measured{.ms = 1, .floor_ms = 0.4, .bound = "launch"};
  for (const std::string& s : symptoms_of(v)) EXPECT_FALSE(s.starts_with("far from")) << s;
}

TEST(Symptom, WhatAWrongElementDependsOn) {
  const auto first = [](const std::vector<Json>& entries) {
    Verdict v = whole();
    v.wrong->lies = "everywhere";
    v.wrong->depends = entries;
    return symptoms_of(v).at(0);
  };
  EXPECT_EQ(first({depends(1, nullptr)}), "it depends on elements that it must not depend on");
  EXPECT_EQ(first({depends(1, 0.0)}), "elements have no part in the result that must have one");
  EXPECT_EQ(first({depends(1, 0.0), depends(0, nullptr)}),
            "it depends on other elements than it must");
  EXPECT_EQ(first({depends(1, 2.0)}),
            "some elements count another number of times than the others");
  EXPECT_EQ(first({depends(-1, 1.5), depends(-1, 1.0)}),
            "inputs weigh unevenly against each other");
  EXPECT_EQ(first({depends(-1, 1.5)}), "everything is wrong by different amounts");
}

TEST(Symptom, TheMistakeThatAResultLooksLike) {
  Verdict v = whole();
  v.wrong->depends = Json::array();
  for (const auto& [relation, symptom] : std::vector<std::pair<std::string, std::string>>{
           {"exchanged_inputs", "two inputs are exchanged"},
           {"transposed_input", "an input is transposed"},
           {"first_for_all", "the first part of an input is taken for all"},
           {"left_out", "an input is left out"},
           {"negated_input", "the sign of an input is wrong"},
           {"rounded_input", "an input is rounded"},
           {"wrong_constant", "a constant is wrong"},
           {"nearly_scaled", "a constant is wrong"},
           {"nearly_scaled_rows", "each row has a factor near 1"},
           {"one_way", "the errors all go one way"},
           {"scaled_rows", "each row is a multiple of what it must be"}}) {
    v.wrong->relation = relation;
    EXPECT_EQ(symptoms_of(v).at(0), symptom);
  }
}

TEST(Symptom, ThoseThatNoHostKernelBringsAbout) {
  Verdict v;
  v.failure = Failure::refuted;
  EXPECT_EQ(symptoms_of(v), std::vector<std::string>{"the checker shows a wrong schedule"});
  v = {};
  v.resources = {{"spill_bytes", 64}};
  EXPECT_EQ(symptoms_of(v), std::vector<std::string>{"registers spill"});
  v = {};
  v.measured = Measured{.ms = 3, .floor_ms = 1, .bound = "memory", .peers = {{"eager", 2}}};
  EXPECT_EQ(symptoms_of(v),
            (std::vector<std::string>{"slower than PyTorch", "far from the memory's rate"}));
  v.measured = Measured{.ms = 1, .floor_ms = 0.9, .bound = "memory", .peers = {{"eager", 2}}};
  EXPECT_TRUE(symptoms_of(v).empty());
}

/// A verdict that stopped so, with what the machine said.
Verdict stopped(Failure failure, const std::string& cause) {
  Verdict v;
  v.failure = failure;
  v.cause = cause;
  return v;
}

TEST(Symptom, WhatAGpuOrACompilerSays) {
  const auto first = [](const Verdict& v) { return symptoms_of(v).at(0); };
  // cudaGetErrorString and ptxas in CUDA 13.0.
  EXPECT_EQ(first(stopped(Failure::not_loadable, "too many resources requested for launch")),
            "the launch was refused");
  EXPECT_EQ(first(stopped(Failure::not_loadable, "invalid configuration argument")),
            "the launch was refused");
  EXPECT_EQ(first(stopped(Failure::crash, "CUDA error: misaligned address")),
            "an access is not aligned");
  EXPECT_EQ(first(stopped(Failure::out_of_memory, "")), "there was not enough memory");
  EXPECT_EQ(first(stopped(Failure::compiler_hangs, "")), "the compiler does not come to an end");
  EXPECT_EQ(first(stopped(Failure::not_the_pattern, "")),
            "the kernel takes other tensors than the pattern has");
  Verdict v;
  v.measured = Measured{.ms = 0.01, .floor_ms = 0.002, .bound = "launch"};
  EXPECT_EQ(symptoms_of(v), std::vector<std::string>{"the launch takes most of the time"});
  v.measured->ms = 0.003;
  EXPECT_TRUE(symptoms_of(v).empty());
}

TEST(Symptom, EveryRowIsWhole) {
  for (const Symptom& s : symptoms()) {
    for (const std::string_view text : {s.cause, s.where, s.remedy})
      EXPECT_GT(text.size(), 20U) << s.name;
    EXPECT_FALSE(s.shows(Verdict{})) << s.name << " is seen where nothing is wrong";
  }
}

TEST(Source, TunablesAreReadAndCombined) {
  const auto s = read("k.cpp", "// tunable: A = 8, 16\nint x;\n  // tunable: B = -1, 2, 2\n");
  ASSERT_TRUE(s);
  ASSERT_EQ(s->tunables.size(), 2U);
  EXPECT_EQ(s->tunables[1].values, (std::vector<int64_t>{-1, 2}));
  const auto all = combinations(s->tunables);
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all.front(), Json({{"A", 8}, {"B", -1}}));
  EXPECT_EQ(combinations({}).size(), 1U);
}

TEST(Source, WhatIsNoTunableIsRefusedWithItsLine) {
  for (const char* bad : {"// tunable: A\n", "// tunable: A = x\n", "// tunable: 1A = 2\n",
                          "// tunable: A = 1,\n", "// tunable: A = 1\n// tunable: A = 2\n"}) {
    const auto s = read("k.cpp", bad);
    ASSERT_FALSE(s) << bad;
    EXPECT_EQ(s.error().code, "TS0049");
    EXPECT_GT(s.error().place.line, 0);
  }
  EXPECT_TRUE(read("k.cpp", "// a tunable: A\n# tunable: A\n"));
  EXPECT_TRUE(read("k.cpp", "// tunable: A = 1\n// tunable: B = 1\n"));
  EXPECT_FALSE(
      read("k.cpp", "// tunable: A = 1,2,3,4,5,6,7,8,9\n// tunable: B = 1,2,3,4,5,6,7,8\n"));
  EXPECT_EQ(read("k.rs", "").error().code, "TS0050");
}

}  // namespace
}  // namespace tessera::attempt
