// Sums that loops carry from turn to turn: their text, and what the verifier says of wrong ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/builder.h"
#include "core/parse.h"
#include "core/print.h"
#include "core/testing/same.h"
#include "core/verify.h"

namespace tessera::core {
namespace {

using ::testing::HasSubstr;

/// A loop of n turns that adds up `amount` of its counter.
Kernel kernel_of(const std::function<Term(Builder&, Term)>& amount) {
  Builder b("k", 32);
  const Term n = b.parameter("n", 1, 100);
  b.loop("turn", b.number(0), n, b.number(1), [&](Term turn) {
    const Term before = b.carried(turn, "before", amount(b, turn));
    b.loop("step", b.number(0), turn + 1, b.number(1), [&](Term step) {
      b.when(equals(floor_mod(before + step, 2), b.number(0)), [&] { b.issue("bulk.commit"); });
    });
  });
  return *b.finish();
}

std::vector<std::string> told(const Kernel& k) {
  std::vector<std::string> out;
  for (const Diagnostic& d : verify(k, **arch::find("sm_90a"))) out.push_back(d.message);
  return out;
}

TEST(CoreCarried, TextIsReadBack) {
  const Kernel k = kernel_of([](Builder&, Term turn) { return turn + 1; });
  const std::string text = to_string(k);
  EXPECT_THAT(text, HasSubstr("        before = carried(turn + 1)\n"));
  const Result<Kernel> read = parse("k.py", text);
  ASSERT_TRUE(read) << to_text(read.error());
  EXPECT_TRUE(testing::same(k, *read));
  EXPECT_EQ(to_string(*read), text);
  EXPECT_FALSE(testing::same(k, kernel_of([](Builder&, Term turn) { return turn + 2; })));
}

TEST(CoreCarried, ItStandsInALoopItself) {
  std::string text = to_string(kernel_of([](Builder&, Term turn) { return turn + 1; }));
  const std::string line = "        before = carried(turn + 1)\n";
  text.replace(text.find(line), line.size(),
               "        if turn == 0:\n            before = carried(turn + 1)\n");
  const Result<Kernel> read = parse("k.py", text);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "a sum over turns stands outside of their loop");
}

TEST(CoreCarried, SumsCountUp) {
  EXPECT_TRUE(told(kernel_of([](Builder&, Term turn) { return turn + 1; })).empty());
  EXPECT_THAT(told(kernel_of([](Builder&, Term turn) { return turn - 1; })),
              ::testing::ElementsAre("`before` may count down"));
}

TEST(CoreCarried, AmountsAreNoSums) {
  Kernel k = kernel_of([](Builder&, Term turn) { return turn + 1; });
  auto& loop = std::get<For>(k.body.front().node);
  loop.carried.front().amount = loop.carried.front().amount + loop.carried.front().symbol;
  EXPECT_THAT(told(k), ::testing::ElementsAre("`before` is added up and made of such sums"));
}

TEST(CoreCarried, OnlyLoopsThatCountAtRunTimeCarry) {
  Kernel k = kernel_of([](Builder&, Term turn) { return turn + 1; });
  auto& loop = std::get<For>(k.body.front().node);
  loop.unroll = true;
  EXPECT_THAT(told(k), ::testing::Contains("an unrolled loop carries a sum from turn to turn"));
}

TEST(CoreCarried, ASumIsKnownInItsLoopAlone) {
  Kernel k = kernel_of([](Builder&, Term turn) { return turn + 1; });
  const Term before = std::get<For>(k.body.front().node).carried.front().symbol;
  If outside;
  outside.condition = equals(before, k.pool->constant(0));
  k.body.push_back({outside, {}});
  EXPECT_THAT(told(k), ::testing::ElementsAre("`before` is not known here"));
}

}  // namespace
}  // namespace tessera::core
