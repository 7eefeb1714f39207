// The rendered prompts of fixed states, word for word: src/agent/testdata/NAME.txt.
// TESSERA_WRITE_FIXTURES=1 writes them anew.
#include "agent/view.h"

#include <cstdlib>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/source_folder.h"

#include "agent/prompt.h"
#include "llm/message.h"

namespace tessera::agent {
namespace {

Subject subject() {
  return {.id = "p02",
          .rule = "row_norm",
          .summary = "layer_norm 67x40 fp32, weight, bias",
          .floor_ms = 0.0012,
          .unfused_ms = 0.0101,
          .gain_ms = 0.0089,
          .facts = "// p02 row_norm\n// Meaning, as ATen nodes:\n//   %y = layer_norm(%x)\n",
          .skeleton = "FN void rows(Index item) {\n  sum();\n}\n",
          .ending = ".cpp"};
}

attempt::Verdict wrong() {
  using attempt::Gate;
  using attempt::Passage;
  attempt::Verdict v{.source = "p02-1.cpp", .pattern = "p02", .rule = "row_norm"};
  v.gates = {{.gate = Gate::parse},
             {.gate = Gate::check, .passage = Passage::skipped},
             {.gate = Gate::build},
             {.gate = Gate::verify, .passage = Passage::failed}};
  v.failure = attempt::Failure::wrong_result;
  v.cause = "relative RMS error 1.2 is above the budget of 1e-06";
  v.place = {.file = "p02-1.cpp", .line = 2, .column = 1};
  v.wrong = attempt::Wrong{.output = "y",
                           .shape = {67, 40},
                           .index = {0, 32},
                           .expected = "0.5",
                           .found = "0",
                           .count = 536,
                           .of = 2680,
                           .lies = "tail of columns",
                           .details = "the last 8 of dim 1",
                           .relation = "zero",
                           .relation_details = "all of the wrong ones are 0",
                           .inputs = "normal, seed 0"};
  v.counterexample = {{"kind", "race"}, {"byte", 16}};
  v.warnings = {"/home/u/.cache/kernels/ab/source.cpp:7: unused variable `x`, a /b/ c"};
  v.advice = {{.symptom = "a tail is missing",
               .cause = "The loop ends early.",
               .where = "the bound of the loop",
               .remedy = "let it run to the extent"}};
  return v;
}

attempt::Verdict passed() {
  attempt::Verdict v{.source = "p02-2.cpp", .pattern = "p02"};
  v.gates = {{.gate = attempt::Gate::measure}};
  v.measured = attempt::Measured{.ms = 0.02,
                                 .ci95 = 0.001,
                                 .floor_ms = 0.0012,
                                 .bound = "memory",
                                 .peers = {{.name = "eager", .ms = 0.03}}};
  v.variants = {{.tunables = {{"ROWS", 8}}, .outcome = "measured", .ms = 0.02},
                {.tunables = {{"ROWS", 16}}, .outcome = "crashed", .reason = "signal 11"}};
  v.standing = "the fastest there is: stored in the registry";
  return v;
}

View view() {
  return {.arch = "host",
          .device = "cpu",
          .precision = "fp32",
          .patterns = {subject()},
          .attempts_left = 4};
}

void expect_as_stored(const std::string& name, const std::string& prompt, const std::string& text) {
  const auto prompts = Prompts::read(source_folder() + "/knowledge/prompts");
  ASSERT_TRUE(prompts) << prompts.error().message;
  const std::string whole = prompts->at(prompt).text + "----\n" + text;
  const std::filesystem::path file = source_folder() + "/src/agent/testdata/" + name + ".txt";
  if (std::getenv("TESSERA_WRITE_FIXTURES") != nullptr) write_file_atomically(file, whole);
  EXPECT_EQ(whole, read_file(file))
      << "a prompt that changes is a new version: raise it, and write "
         "the fixtures anew with TESSERA_WRITE_FIXTURES=1";
}

constexpr int64_t enough = 8000;

TEST(View, OfProposals) {
  View v = view();
  v.nodes = "  %relu : f32[8,8] = aten.relu(%x)\n* %roll : f32[8,8] = aten.roll(%relu)\n";
  v.said = "hole: no pattern, a path leaves the nodes and comes back\n";
  expect_as_stored("propose", "propose", render_proposals(v, enough));
}

TEST(View, OfAPlan) {
  View v = view();
  v.patterns.push_back(subject());
  v.patterns.back().id = "p03";
  v.patterns.back().skeleton.clear();
  expect_as_stored("plan", "plan", render_plan(v, enough));
}

TEST(View, OfAFirstSource) {
  expect_as_stored("write", "write", render(view(), enough));
}

TEST(View, OfAWrongSource) {
  View v = view();
  v.source = "one\n  two();\nthree\n";
  v.verdict = wrong();
  v.tried = {{.number = 1, .outcome = "wrong_result", .note = "blocks", .cause = "RMS error"}};
  v.said = "a person refused your last source: too long\n";
  expect_as_stored("fix", "fix", render(v, enough));
}

TEST(View, OfAFasterSource) {
  View v = view();
  v.source = "// tunable: ROWS = 8, 16\n";
  v.verdict = passed();
  v.times = {{.what = "your source 2", .ms = 0.02}, {.what = "eager", .ms = 0.03}};
  v.tried = {{.number = 2, .outcome = "passed", .ms = 0.02}};
  expect_as_stored("tune", "tune", render(v, enough));
}

TEST(View, StaysWithinItsTokensAndKeepsTheVerdict) {
  View v = view();
  v.patterns.front().facts = std::string();
  for (int i = 0; i < 3000; ++i) v.source += "a line of the source " + std::to_string(i) + "\n";
  v.verdict = wrong();
  const std::string text = render(v, 2000);
  EXPECT_LE(llm::estimated_tokens(text), 2000);
  EXPECT_NE(text.find(verdict_text(*v.verdict, v.source)), std::string::npos);
  EXPECT_NE(text.find("lines left out"), std::string::npos);
}

}  // namespace
}  // namespace tessera::agent
