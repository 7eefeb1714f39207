#include "registry/thoroughness.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera::registry {
namespace {

using ::testing::HasSubstr;

Thoroughness after(const std::string& effort, double allowed, double spent,
                   const std::string& because, bool untried = false) {
  return thoroughness_of({.asked = {.effort = effort, .seconds = allowed},
                          .seconds = spent,
                          .because = because,
                          .untried = untried,
                          .candidates = 3,
                          .measurements = 5});
}

TEST(Thoroughness, ASearchThatEndedByItselfAnswersItsEffortAndLess) {
  for (const char* because : {"space exhausted", "no gain in 16 candidates", "budget of 32 builds",
                              "budget of 400 measurements", "budget of 240 s"}) {
    const Thoroughness t = after("default", 0, 239, because);
    EXPECT_TRUE(t.passes.at(0).complete) << because;
    EXPECT_TRUE(satisfies(t, {.effort = "default"})) << because;
    EXPECT_TRUE(satisfies(t, {.effort = "default", .seconds = 1000})) << because;
    EXPECT_TRUE(satisfies(t, {.effort = "quick"})) << because;
    EXPECT_FALSE(satisfies(t, {.effort = "max"})) << because;
    EXPECT_FALSE(satisfies(t, {.effort = "max", .seconds = 1})) << because;
  }
}

TEST(Thoroughness, ACutSearchAnswersTheSecondsThatItWasAllowed) {
  const Thoroughness t = after("default", 10, 8, "budget of 10 s");
  EXPECT_TRUE(satisfies(t, {.effort = "default", .seconds = 10}));
  EXPECT_TRUE(satisfies(t, {.effort = "quick", .seconds = 5}));
  EXPECT_FALSE(satisfies(t, {.effort = "default", .seconds = 20}));
  EXPECT_FALSE(satisfies(t, {.effort = "default"}));
  EXPECT_FALSE(satisfies(t, {.effort = "quick"}));  // up to 60 s
  EXPECT_THAT(to_text(t), HasSubstr("cut at 10 s of default (budget of 10 s, 8 s)"));
}

TEST(Thoroughness, AnInterruptedOneAnswersWhatItSpent) {
  const Thoroughness t = after("default", 0, 7, "interrupted");
  EXPECT_TRUE(satisfies(t, {.effort = "default", .seconds = 7}));
  EXPECT_FALSE(satisfies(t, {.effort = "default", .seconds = 9}));
  EXPECT_FALSE(satisfies(t, {.effort = "default"}));
}

TEST(Thoroughness, ASpaceIsNotExhaustedWhereSecondsLeftCandidatesOut) {
  EXPECT_FALSE(satisfies(after("default", 10, 9, "space exhausted", true), {.seconds = 20}));
  EXPECT_TRUE(satisfies(after("default", 10, 9, "space exhausted", false), {.seconds = 20}));
}

Thoroughness within_memory(double left_out_from, double seconds) {
  return thoroughness_of({.asked = {.seconds = seconds},
                          .seconds = seconds > 0 ? seconds : 30,
                          .because = seconds > 0 ? "budget" : "space exhausted",
                          .left_out_from = left_out_from});
}

TEST(Thoroughness, WhatWasLeftOutForItsMemoryIsSearchedWhereThereIsRoom) {
  const Thoroughness t = within_memory(600e6, 0);
  EXPECT_TRUE(satisfies(t, {.scratch = 599e6}));
  EXPECT_FALSE(satisfies(t, {.scratch = 600e6}));
  EXPECT_FALSE(satisfies(t, {.scratch = INFINITY}));
  EXPECT_TRUE(satisfies(t, {}));  // not known yet
  EXPECT_TRUE(satisfies(within_memory(0, 0), {.scratch = INFINITY}));
  EXPECT_THAT(to_text(t), HasSubstr("30 s, without workspaces of 600.0 MB and more)"));
  EXPECT_EQ(to_json(thoroughness_from_json(to_json(t))), to_json(t));
}

TEST(Thoroughness, SearchesThatLeftOutOthersAreToldApart) {
  const Thoroughness t = together(within_memory(600e6, 0), within_memory(0, 10), true);
  ASSERT_EQ(t.passes.size(), 2u);
  EXPECT_TRUE(satisfies(t, {.seconds = 100, .scratch = 1e6}));
  EXPECT_TRUE(satisfies(t, {.seconds = 10, .scratch = 1e9}));
  EXPECT_FALSE(satisfies(t, {.seconds = 100, .scratch = 1e9}));
  EXPECT_EQ(together(t, within_memory(600e6, 0), true).passes.size(), 2u);
}

TEST(Thoroughness, UnknownAnswersNothing) {
  EXPECT_FALSE(satisfies({}, {.effort = "quick", .seconds = 0.1}));
  EXPECT_EQ(to_text(Thoroughness{}), "unknown");
}

TEST(Thoroughness, SearchesThatGoOnAddUp) {
  const Thoroughness t = together(after("default", 10, 10, "budget of 10 s"),
                                  after("default", 5, 10, "budget of 5 s"), true);
  ASSERT_EQ(t.passes.size(), 1u);
  EXPECT_EQ(t.passes[0].seconds_spent, 20);
  EXPECT_TRUE(satisfies(t, {.effort = "default", .seconds = 20}));
  EXPECT_EQ(t.measurements, 10);
  const Thoroughness same = together(t, after("default", 5, 10, "budget of 5 s"), false);
  EXPECT_EQ(same.passes[0].seconds_spent, 20);
}

TEST(Thoroughness, ACutSearchAtAHigherEffortLeavesTheLowerOneComplete) {
  const Thoroughness t = together(after("quick", 0, 30, "no gain in 16 candidates"),
                                  after("default", 6, 6, "budget of 6 s"), true);
  EXPECT_TRUE(satisfies(t, {.effort = "quick"}));
  EXPECT_TRUE(satisfies(t, {.effort = "default", .seconds = 6}));
  EXPECT_FALSE(satisfies(t, {.effort = "default"}));
  EXPECT_THAT(to_text(t), HasSubstr("complete at quick"));
}

TEST(Thoroughness, SurvivesJsonAndRefusesNonsense) {
  const Thoroughness t = after("default", 10, 8, "budget of 10 s");
  const Thoroughness back = thoroughness_from_json(parse_json(to_json(t).dump()));
  EXPECT_EQ(to_json(back), to_json(t));
  for (const char* nonsense :
       {R"(7)", R"({"passes":"all"})", R"({"passes":[3,{"effort":9},{"effort":"heroic"}]})",
        R"({"candidates":"many","passes":null})"}) {
    const Thoroughness none = thoroughness_from_json(parse_json(nonsense));
    EXPECT_TRUE(none.passes.empty()) << nonsense;
  }
  const Json odd = parse_json(
      R"({"candidates":-4,"passes":[{"effort":"max","complete":"yes","seconds_allowed":"9"}]})");
  const Thoroughness cut = thoroughness_from_json(odd);
  EXPECT_EQ(cut.candidates, 0);
  EXPECT_FALSE(satisfies(cut, {.effort = "max", .seconds = 1}));
}

}  // namespace
}  // namespace tessera::registry
