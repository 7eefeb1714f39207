#include "llm/archive.h"

#include <fstream>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/text.h"

#include "llm/conversation.h"

namespace tessera::llm {
namespace {

using Use = Archive::Use;
namespace fs = std::filesystem;

const Json of = {{"model", "m"}, {"module", "abc"}};

/// What `once` returns for a record that holds this number.
Json taken(Archive& a, const std::string& about, int number, int& made) {
  const auto out = a.once("verdict", about, [&]() -> Result<Json> {
    ++made;
    return Json(number);
  });
  return out && *out ? **out : Json(out ? "end" : out.error().code);
}

TEST(Archive, ARunGoesOnBehindItsLastLineAndIsReplayed) {
  const TemporaryFolder folder;
  const fs::path at = folder.path() / "mind";
  int made = 0;
  {
    auto a = Archive::open(at, of, Use::record);
    ASSERT_TRUE(a) << a.error().message;
    EXPECT_EQ(taken(*a, "x", 1, made), 1);
    EXPECT_EQ(taken(*a, "y", 2, made), 2);
  }
  {
    std::ofstream torn(at / "turns.jsonl", std::ios::app);
    torn << R"({"kind": "verdict", "about": "z")";  // killed while it was written
  }
  auto b = Archive::open(at, of, Use::record);
  ASSERT_TRUE(b) << b.error().message;
  EXPECT_EQ(taken(*b, "x", 7, made), 1);
  EXPECT_TRUE(b->repeats());
  EXPECT_EQ(taken(*b, "y", 7, made), 2);
  EXPECT_FALSE(b->repeats());
  EXPECT_EQ(taken(*b, "z", 3, made), 3);
  EXPECT_EQ(made, 3);
  b->note("stopped", {{"why", "the budget"}});
  auto c = Archive::open(at, of, Use::replay);
  ASSERT_TRUE(c);
  EXPECT_EQ(c->stopped_because(), "the budget");
  for (const char* about : {"x", "y", "z"}) taken(*c, about, 9, made);
  EXPECT_EQ(taken(*c, "w", 9, made), "end");
  EXPECT_EQ(made, 3);
}

TEST(Archive, WhatIsOfAnotherRunIsRefusedWithTheDifference) {
  const TemporaryFolder folder;
  int made = 0;
  {
    auto a = Archive::open(folder.path(), of, Use::record);
    taken(*a, "x", 1, made);
  }
  const auto other = Archive::open(folder.path(), {{"model", "n"}, {"module", "abc"}}, Use::record);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, "TS0739");
  EXPECT_NE(other.error().message.find(R"(model was "m", and is "n")"), std::string::npos);
  auto same = Archive::open(folder.path(), of, Use::record);
  EXPECT_EQ(taken(*same, "y", 1, made), "TS0739");
  EXPECT_EQ(Archive::open(folder.path() / "none", of, Use::replay).error().code, "TS0739");
}

TEST(Archive, AFinishedRunIsMovedAsideAndADamagedLineIsNamed) {
  const TemporaryFolder folder;
  const fs::path at = folder.path() / "mind";
  int made = 0;
  {
    auto a = Archive::open(at, of, Use::record);
    taken(*a, "x", 1, made);
  }
  Archive::finish(at, {{"calls", 1}});
  auto b = Archive::open(at, of, Use::record);
  ASSERT_TRUE(b);
  EXPECT_EQ(taken(*b, "x", 5, made), 5);
  EXPECT_TRUE(fs::exists(folder.path() / "mind-1" / "turns.jsonl"));
  std::ofstream(at / "turns.jsonl", std::ios::app) << "no record\n";
  const auto damaged = Archive::open(at, of, Use::record);
  EXPECT_NE(damaged.error().message.find("line 3"), std::string::npos) << damaged.error().message;
}

TEST(Conversation, AsksWithinTheBudgetAndNeverTwice) {
  const TemporaryFolder folder;
  int asked = 0;
  const Ask ask = [&](const Request& r) -> Result<Reply> {
    ++asked;
    return Reply{.text = "to " + r.view, .usage = {.input = 10, .output = 20}};
  };
  const auto talk = [&](int64_t calls, int turns) {
    auto archive = Archive::open(folder.path(), of, Use::record);
    auto budget = Budget::make({.calls = calls}, std::nullopt, "m");
    Conversation c(*archive, *budget, ask);
    std::string last;
    for (int i = 0; i < turns; ++i) {
      const auto reply =
          c.ask("write/1", {.system = "s", .view = std::to_string(i), .max_tokens = 9});
      last = *reply ? (*reply)->text : "stopped: " + c.stopped();
    }
    return std::pair(last, c.spent().usage.output);
  };
  EXPECT_EQ(talk(2, 2), std::pair(std::string("to 1"), int64_t{40}));
  EXPECT_EQ(asked, 2);
  const auto [last, output] = talk(3, 4);
  EXPECT_EQ(last, "stopped: the budget is reached: 3 of 3 calls are made (--budget-calls)");
  EXPECT_EQ(output, 60);
  EXPECT_EQ(asked, 3);
  const std::string lines = read_file(folder.path() / "turns.jsonl");
  EXPECT_EQ(split(lines, '\n').size(), 1 + 3 * 2 + 2 + 1U);  // run, turns, resumed and stopped, end
  EXPECT_NE(lines.find(R"("schema":"tessera.mind/1")"), std::string::npos);
}

TEST(Conversation, AReplyThatIsMissingIsAskedForAfterItsRequest) {
  const TemporaryFolder folder;
  const Request request{.system = "s", .view = "v", .max_tokens = 9};
  const auto talk = [&](const Ask& ask) {
    auto archive = Archive::open(folder.path(), of, Use::record);
    auto budget = Budget::make({}, std::nullopt, "m");
    Conversation c(*archive, *budget, ask);
    return c.ask("write/1", request);
  };
  const auto down = talk([](const Request&) -> Result<Reply> {
    return error(fail(Code{"TS0735", "mind.provider_down"}, "down"));
  });
  ASSERT_FALSE(down);
  const auto up = talk([](const Request&) -> Result<Reply> { return Reply{.text = "up"}; });
  ASSERT_TRUE(up && *up);
  EXPECT_EQ((*up)->text, "up");
}

}  // namespace
}  // namespace tessera::llm
