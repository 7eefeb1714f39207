#include "llm/budget.h"

#include <gtest/gtest.h>

namespace tessera::llm {
namespace {

Request request(int64_t bytes, int64_t max_tokens) {
  return {.view = std::string(static_cast<std::size_t>(bytes), 'x'), .max_tokens = max_tokens};
}

Reply reply(int64_t input, int64_t output) {
  return {.usage = {.input = input, .output = output}, .seconds = 2};
}

const Price price{.model = "m", .input = 10, .output = 100};

TEST(Prices, TheRowThatSaysMostOfTheNameIsTaken) {
  const auto prices = Prices::read(R"({"schema": "tessera.prices/1", "prices": [
      {"model": "a*", "input": 1, "output": 2}, {"model": "a-big*", "input": 3, "output": 4},
      {"model": "b", "input": 5, "output": 6}]})",
                                   "p");
  ASSERT_TRUE(prices);
  EXPECT_EQ(prices->of("a-small")->input, 1);
  EXPECT_EQ(prices->of("a-big-2")->input, 3);
  EXPECT_EQ(prices->of("b")->output, 6);
  EXPECT_FALSE(prices->of("b-2"));
  for (const char* bad : {"[", "{}", R"({"schema": "other"})",
                          R"({"schema": "tessera.prices/1", "prices": [{"model": "x"}]})"})
    EXPECT_EQ(Prices::read(bad, "p").error().code, "TS0738") << bad;
}

TEST(Budget, MoneyWithoutAPriceIsRefusedAndNoMoneyNeedsNone) {
  EXPECT_EQ(Budget::make({.money = 1}, std::nullopt, "m").error().code, "TS0737");
  const auto budget = Budget::make({.tokens = 9}, std::nullopt, "m");
  ASSERT_TRUE(budget);
  EXPECT_FALSE(budget->spent().money);
}

TEST(Budget, CallsAndTokensEndIt) {
  auto b = Budget::make({.tokens = 3000, .calls = 2}, std::nullopt, "m");
  EXPECT_FALSE(b->reached(request(300, 1000)));
  EXPECT_EQ(b->room_for(request(300, 10000)), 2900);  // 100 tokens are read at most
  b->take(reply(90, 2400));
  EXPECT_NE(b->reached(request(300, 1000))->find("2490 of 3000 tokens"), std::string::npos);
  EXPECT_FALSE(b->reached(request(300, 10)));  // a call that needs less room than is left
  b->take(reply(1, 1));
  EXPECT_NE(b->reached(request(3, 1))->find("2 of 2 calls"), std::string::npos);
}

TEST(Budget, MoneyEndsItBeforeItIsSpent) {
  auto b = Budget::make({.money = 0.2}, price, "m");
  // 1000 tokens read cost 0.01 dollars, which leaves 0.19 for 1900 written.
  EXPECT_NEAR(static_cast<double>(b->room_for(request(3000, 10000))), 1900, 1);
  b->take(reply(1000, 1500));
  EXPECT_NEAR(*b->spent().money, 0.16, 1e-12);
  const auto why = b->reached(request(3000, 10000));
  ASSERT_TRUE(why);
  EXPECT_NE(why->find("$0.1600 of $0.2000"), std::string::npos) << *why;
}

TEST(Budget, SecondsOfEarlierPartsCount) {
  auto b = Budget::make({.seconds = 100}, std::nullopt, "m");
  EXPECT_FALSE(b->reached(request(3, 1)));
  b->add_seconds(101);
  EXPECT_NE(b->reached(request(3, 1))->find("of 100 s"), std::string::npos);
}

TEST(Message, RepliesReadBackAndRequestsAreNamedByWhatIsRead) {
  const Reply r{.text = "t", .ending = Ending::length, .usage = {1, 2, false}, .attempts = 3};
  EXPECT_EQ(to_json(reply_from_json(to_json(r))), to_json(r));
  Json j = to_json(r);
  j["ending"] = "other";
  EXPECT_THROW(reply_from_json(j), std::invalid_argument);
  const Request a{.system = "s", .view = "v", .max_tokens = 1}, b{.system = "s", .view = "v"};
  EXPECT_EQ(a.hash(), b.hash());
  EXPECT_NE(a.hash(), (Request{.system = "sv"}.hash()));
}

}  // namespace
}  // namespace tessera::llm
