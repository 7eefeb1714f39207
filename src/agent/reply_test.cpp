#include "agent/reply.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/source_folder.h"
#include "base/text.h"

#include "agent/fit.h"
#include "agent/prompt.h"
#include "llm/message.h"

namespace tessera::agent {
namespace {

TEST(Reply, TheLongestBlockIsTheSource) {
  const auto read = read_source_reply(
      "I block the rows.\n```\nshort\n```\nthen\n```cpp\nint a;\nint b;\n```\nand no more\n");
  const auto& w = std::get<Written>(read);
  EXPECT_EQ(w.text, "int a;\nint b;\n");
  EXPECT_EQ(w.ending, ".cpp");
  EXPECT_EQ(w.note, "I block the rows.");
  EXPECT_EQ(std::get<Written>(read_source_reply("```python\nx\n```")).ending, ".py");
  EXPECT_EQ(std::get<Written>(read_source_reply("```\nx\n```")).ending, "");
}

TEST(Reply, TheEndAndWhatCannotBeRead) {
  EXPECT_EQ(std::get<Done>(read_source_reply("well.\nDONE: at the roofline\n")).why,
            "at the roofline");
  EXPECT_NE(std::get<Unreadable>(read_source_reply("no idea")).why.find("no block"),
            std::string::npos);
  EXPECT_NE(std::get<Unreadable>(read_source_reply("```cpp\nint a;")).why.find("cut off"),
            std::string::npos);
}

TEST(Reply, APlanIsAJsonObjectWhereverItStands) {
  const auto read = read_plan_reply(
      "Here:\n```json\n{\"order\": [\"p2\", \"p1\"], \"reasons\": {\"p2\": \"big\"}}\n```\n");
  const Plan& plan = std::get<Plan>(read);
  EXPECT_EQ(plan.order, (std::vector<std::string>{"p2", "p1"}));
  EXPECT_EQ(plan.reasons.front().second, "big");
  for (const char* bad : {"p2, then p1", "{order: p2}", "{\"order\": \"p2\"}", "} {"})
    EXPECT_TRUE(std::holds_alternative<Unreadable>(read_plan_reply(bad))) << bad;
}

TEST(Reply, ProposalsAreNamedSubgraphsOrNone) {
  const auto read = read_proposals_reply(
      R"({"proposals": [{"name": "gate", "nodes": ["add", "mul"], "rationale": "both read x"}]})");
  const auto& all = std::get<std::vector<Proposal>>(read);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].name, "gate");
  EXPECT_EQ(all[0].nodes, (std::vector<std::string>{"add", "mul"}));
  EXPECT_EQ(all[0].rationale, "both read x");
  EXPECT_TRUE(
      std::get<std::vector<Proposal>>(read_proposals_reply(R"({"proposals": []})")).empty());
  for (const char* bad : {R"({"order": []})", R"({"proposals": [{"nodes": ["add"]}]})", "add"})
    EXPECT_TRUE(std::holds_alternative<Unreadable>(read_proposals_reply(bad))) << bad;
}

TEST(Fit, WhatSaysLeastIsCutFirstAndSaysByHowMuch) {
  std::string lines;
  for (int i = 0; i < 100; ++i) lines += "line " + std::to_string(i) + "\n";
  const std::vector<Section> sections = {{.title = "a", .text = lines, .keep = 5},
                                         {.title = "b", .text = lines, .keep = 1},
                                         {.title = "none", .text = "", .keep = 0}};
  const std::string whole = fit(sections, 100000);
  EXPECT_EQ(whole, "## a\n" + lines + "## b\n" + lines);
  const std::string cut = fit(sections, 400);
  EXPECT_LE(llm::estimated_tokens(cut), 400);
  EXPECT_EQ(cut.find("## a\n" + lines), 0U) << cut;
  EXPECT_NE(cut.find("line 0\n", cut.find("## b")), std::string::npos);
  EXPECT_NE(cut.find("lines left out"), std::string::npos);
  EXPECT_LE(llm::estimated_tokens(fit(sections, 50)), 50);
}

TEST(Prompts, AreReadWithTheirVersionsAndRefusedWithout) {
  const auto prompts = Prompts::read(source_folder() + "/knowledge/prompts");
  ASSERT_TRUE(prompts) << prompts.error().message;
  EXPECT_EQ(prompts->at("write").id().find("write/"), 0U);
  EXPECT_EQ(prompts->at("fix").text.find("<!--"), std::string::npos);
  const TemporaryFolder folder;
  EXPECT_EQ(Prompts::read(folder.path()).error().code, "TS0740");
  for (const char* head :
       {"", "<!-- tessera.prompt/1 fix 1 -->", "<!-- tessera.prompt/1 plan x -->"}) {
    write_file_atomically(folder.path() / "plan.md", std::string(head) + "\ntext\n");
    EXPECT_EQ(Prompts::read(folder.path()).error().code, "TS0740") << head;
  }
}

}  // namespace
}  // namespace tessera::agent
