#include "agent/loop.h"

#include <gtest/gtest.h>
#include <set>

#include "base/files.h"
#include "base/source_folder.h"
#include "base/text.h"

namespace tessera::agent {
namespace {

using llm::Archive;

/// A source passes where it says `right`; its time is the number behind `ms `.
attempt::Verdict verdict_on(const std::string& text) {
  using attempt::Gate;
  using attempt::Passage;
  attempt::Verdict v{.source = "s"};
  const bool right = text.find("right") != std::string::npos;
  v.gates = {{.gate = Gate::verify, .passage = right ? Passage::passed : Passage::failed}};
  if (!right) {
    v.failure = attempt::Failure::wrong_result;
    v.cause = "the tail is wrong";
    return v;
  }
  const double ms = std::stod(text.substr(text.find("ms ") + 3));
  v.measured = attempt::Measured{.ms = ms, .peers = {{.name = "eager", .ms = 9}}};
  v.won = ms < 9;
  return v;
}

std::string source(const std::string& text) {
  return "I try.\n```\n" + text + "\n```\n";
}

/// A loop over two patterns, with a model that says the replies in their order.
struct Bench {
  TemporaryFolder folder;
  std::vector<std::string> replies;
  std::size_t at = 0;
  std::vector<std::string> views;
  std::vector<std::string> judged;
  std::vector<Checkpoint> shown;
  std::vector<Decision> decisions;
  Options options;
  llm::Limits limits;
  std::optional<Diagnostic> judge_fails;
  int left = 0;  // nodes without a pattern
  std::vector<std::string> proposed;

  Result<Report> run(Archive::Use use = Archive::Use::record) {
    const auto prompts = Prompts::read(source_folder() + "/knowledge/prompts");
    auto archive = Archive::open(folder.path() / "mind", {{"model", "m"}}, use);
    if (!archive) return error(archive.error());
    auto budget = llm::Budget::make(limits, std::nullopt, "m");
    llm::Conversation c(*archive, *budget, [&](const llm::Request& r) -> Result<llm::Reply> {
      views.push_back(r.view);
      if (at == replies.size())
        return error(fail(Code{"TS0735", "mind.provider_down"}, "the provider is down"));
      return llm::Reply{.text = replies[at++], .usage = {.input = 100, .output = 10}};
    });
    Tools tools;
    tools.judge = [&](const std::string& pattern,
                      const std::filesystem::path& file) -> Result<attempt::Verdict> {
      if (judge_fails) return error(*judge_fails);
      judged.push_back(file.filename().string());
      return verdict_on(read_file(file));
    };
    tools.person = [&](const Checkpoint& checkpoint) -> Result<Decision> {
      shown.push_back(checkpoint);
      const Decision d = decisions.front();
      decisions.erase(decisions.begin());
      return d;
    };
    const std::vector<Subject> ruled = {
        {.id = "p01", .rule = "gemm", .skeleton = "s", .ending = ".cpp"},
        {.id = "p02", .rule = "row_norm", .ending = ".cpp"}};
    tools.propose = [&](const std::vector<Proposal>& all) -> Result<Judged> {
      Judged out{.patterns = ruled};
      for (const Proposal& p : all) {
        proposed.push_back(p.name);
        out.legal += p.name != "hole" ? 1 : 0;
        out.told.push_back(p.name + (p.name == "hole" ? ": refused" : ": p03"));
      }
      out.patterns.push_back({.id = "p03", .rule = "proposed", .ending = ".cpp"});
      return out;
    };
    const Module module{.arch = "host",
                        .patterns = ruled,
                        .nodes = "  %add\n* %roll\n",
                        .without_pattern = left,
                        .ruled = ruled};
    return agent::run(module, options, *prompts, tools, c);
  }
};

const std::string plan = R"({"order": ["p02", "p09"], "reasons": {"p02": "big"}})";

TEST(Loop, AWrongSourceIsMendedMadeFasterAndEnds) {
  Bench b;
  b.replies = {plan,
               source("wrong"),
               "no block",
               source("right ms 5"),
               source("right ms 3"),
               "DONE: the roofline"};
  b.options.attempts = 9;
  const auto r = b.run();
  ASSERT_TRUE(r) << r.error().message;
  ASSERT_EQ(r->patterns.size(), 1U);
  const Worked& w = r->patterns.front();
  EXPECT_EQ(b.judged, (std::vector<std::string>{"p02-1.cpp", "p02-3.cpp", "p02-4.cpp"}));
  EXPECT_EQ(w.first_passed, 3);
  EXPECT_EQ(w.best_ms, 3);
  EXPECT_EQ(w.eager_ms, 9);
  EXPECT_TRUE(w.won);
  EXPECT_EQ(std::filesystem::path(w.best).filename(), "p02-4.cpp");
  EXPECT_EQ(w.ended, "the model has nothing more: the roofline");
  // The diagnosis sees the verdict, the tuning the best source.
  EXPECT_NE(b.views[2].find("wrong_result: the tail is wrong"), std::string::npos);
  EXPECT_NE(b.views[3].find("could not be used"), std::string::npos);
  EXPECT_NE(b.views[5].find("right ms 3"), std::string::npos);
  const Json m = to_json(*r).at("metrics");
  EXPECT_EQ(m.at("calls"), 6);
  EXPECT_EQ(m.at("tokens_in"), 600);
  EXPECT_EQ(m.at("discovery_success"), 0.5);
  EXPECT_EQ(m.at("pass_at_1"), 0);
  EXPECT_EQ(m.at("pass_at_3"), 1);
  EXPECT_NEAR(m.at("verification_rate").get<double>(), 2.0 / 3, 1e-12);
  EXPECT_TRUE(m.at("money").is_null());
  EXPECT_NE(to_text(*r).find("3 ms, eager 9 ms, stored"), std::string::npos) << to_text(*r);
}

TEST(Loop, GoesOnAfterAKillWithoutAskingTwiceAndReplaysWithoutAModel) {
  Bench b;
  b.replies = {plan, source("wrong")};
  const auto died = b.run();  // the provider is down at the third call
  ASSERT_TRUE(died);
  ASSERT_TRUE(died->failure);
  EXPECT_EQ(died->failure->code, "TS0735");
  b.replies.insert(b.replies.end(), {source("right ms 4"), "DONE: enough"});
  const auto whole = b.run();
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_EQ(b.at, b.replies.size());
  EXPECT_EQ(b.judged, (std::vector<std::string>{"p02-1.cpp", "p02-2.cpp"}));
  EXPECT_EQ(whole->spent.calls, 4);
  b.judged.clear();
  const auto again = b.run(Archive::Use::replay);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(b.at, b.replies.size());
  EXPECT_EQ(b.judged, std::vector<std::string>{"p02-2.cpp"});  // what won, here once more
  EXPECT_EQ(to_json(*again).at("patterns"), to_json(*whole).at("patterns"));
}

TEST(Loop, ABudgetEndsItWithTheBestSoFar) {
  Bench b;
  b.replies = {plan, source("right ms 4"), source("right ms 3")};
  b.limits.calls = 2;
  const auto r = b.run();
  ASSERT_TRUE(r);
  EXPECT_EQ(r->stopped, "the budget is reached: 2 of 2 calls are made (--budget-calls)");
  EXPECT_EQ(r->patterns.front().best_ms, 4);
  const auto replayed = b.run(Archive::Use::replay);
  EXPECT_NE(replayed->stopped.find("2 of 2 calls"), std::string::npos) << replayed->stopped;
}

TEST(Loop, APersonApprovesEditsAndRefuses) {
  using Kind = Decision::Kind;
  Bench b;
  b.replies = {plan, source("wrong"), source("right ms 8"), "DONE: enough"};
  b.options.approve = Approve::each;
  b.decisions = {{Kind::edited, "p01  because\n"},
                 {Kind::refused, "too slow"},
                 {Kind::edited, "right ms 2\n"},
                 {Kind::approved, ""}};
  const auto r = b.run();
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(r->patterns.front().id, "p01");
  EXPECT_EQ(r->patterns.front().best_ms, 2);
  EXPECT_NE(b.views[2].find("a person refused your last source: too slow"), std::string::npos);
  ASSERT_EQ(b.shown.size(), 4U);
  EXPECT_EQ(b.shown.back().about, "composition");
  EXPECT_TRUE(r->compose);
  // What was decided is not asked again, and a replay decides the same.
  b.shown.clear();
  const auto again = b.run(Archive::Use::replay);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(b.shown.empty());
  EXPECT_EQ(again->patterns.front().best_ms, 2);
}

TEST(Loop, ARefusedPlanOrCompositionEndsIt) {
  using Kind = Decision::Kind;
  Bench b;
  b.replies = {plan, source("right ms 8"), "DONE: enough"};
  b.options.approve = Approve::plan;
  b.decisions = {{Kind::approved, ""}, {Kind::refused, "not now"}};
  const auto r = b.run();
  EXPECT_FALSE(r->compose);
  EXPECT_EQ(r->stopped, "the composition was refused: not now");
  Bench c;
  c.replies = {plan};
  c.options.approve = Approve::plan;
  c.decisions = {{Kind::refused, "none of these"}};
  EXPECT_EQ(c.run()->stopped, "the plan was refused: none of these");
}

TEST(Loop, AnUnreadablePlanIsAskedForAgainAndThenDiscoverysOwn) {
  Bench b;
  b.replies = {"p02 I think", plan, "DONE: no"};
  EXPECT_EQ(b.run()->patterns.front().id, "p02");
  EXPECT_NE(b.views[1].find("there was no JSON object"), std::string::npos);
  Bench c;
  c.replies = {"a", "b", "c", "DONE: no", "DONE: no"};
  const auto r = c.run();
  EXPECT_EQ(r->patterns.size(), 2U);
  EXPECT_NE(r->plan.back().second.find("discovery's own"), std::string::npos);
}

TEST(Loop, TheSameSourceIsNotJudgedTwiceAndAttemptsAreBounded) {
  Bench b;
  b.options.attempts = 2;
  b.replies = {plan, source("wrong"), source("wrong"), source("right ms 1")};
  const auto r = b.run();
  EXPECT_EQ(b.judged.size(), 1U);
  EXPECT_EQ(r->patterns.front().tried.back().outcome, "the same source once more");
  EXPECT_EQ(b.at, 3U);
}

TEST(Loop, WhatTheEnvironmentCannotDoIsAnErrorAndAStopIsNone) {
  Bench b;
  b.replies = {plan, source("wrong")};
  b.judge_fails = fail(Code{"TS0301", "build.no_compiler"}, "no compiler");
  EXPECT_EQ(b.run().error().code, "TS0301");
  b.judge_fails = fail(user_stopped, "stopped");
  const auto r = b.run();
  ASSERT_TRUE(r);
  EXPECT_EQ(r->stopped, "you stopped it");
  Bench c;  // a provider that never answered
  EXPECT_EQ(c.run().error().code, "TS0735");
}

TEST(Loop, ProposalsAreJudgedMendedOnceAndPlanned) {
  Bench b;
  b.left = 2;
  b.replies = {R"({"proposals": [{"name": "hole", "nodes": ["add", "sum"]},
                                 {"name": "both", "nodes": ["add", "mul"]}]})",
               R"({"proposals": [{"name": "all", "nodes": ["add", "mul", "sum"]}]})",
               R"({"order": ["p03"]})", source("right ms 4"), "DONE: enough"};
  const auto r = b.run();
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(b.proposed, (std::vector<std::string>{"hole", "both", "all"}));
  EXPECT_EQ(r->proposals, (std::vector<std::string>{"hole: refused", "both: p03", "all: p03"}));
  // The graph, then what it said, then the patterns with what was proposed.
  EXPECT_NE(b.views[0].find("* %roll"), std::string::npos) << b.views[0];
  EXPECT_NE(b.views[1].find("hole: refused"), std::string::npos) << b.views[1];
  EXPECT_NE(b.views[2].find("p03"), std::string::npos) << b.views[2];
  ASSERT_EQ(r->patterns.size(), 1U);
  EXPECT_TRUE(r->patterns.front().won);
  EXPECT_EQ(r->named, 4);
  EXPECT_EQ(r->found, 3);
}

TEST(Loop, NothingIsProposedWhereRulesHaveAllOrWhereNobodyAsks) {
  for (const auto& [left, most] : {std::pair{0, 4}, {2, 0}}) {
    Bench b;
    b.left = left;
    b.options.proposals = most;
    b.replies = {R"({"order": []})"};
    const auto r = b.run();
    ASSERT_TRUE(r) << r.error().message;
    EXPECT_TRUE(b.proposed.empty());
    EXPECT_EQ(b.views.size(), 1U);
  }
  Bench none;
  none.left = 2;
  none.replies = {"well", R"({"proposals": []})", R"({"order": []})"};
  ASSERT_TRUE(none.run());
  EXPECT_NE(none.views[1].find("no JSON object"), std::string::npos);
}

}  // namespace
}  // namespace tessera::agent
