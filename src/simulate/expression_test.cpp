#include "simulate/expression.h"

#include <gtest/gtest.h>

#include "term/evaluate.h"

namespace tessera::simulate {
namespace {

TEST(SimulateExpression, AgreesWithTheMeaningOfTerms) {
  term::Pool pool;
  ASSERT_TRUE(pool.coordinate("lane", 32));
  ASSERT_TRUE(pool.parameter("k", {pool.constant(-40), pool.constant(40)}));
  for (const char* text :
       {"k // 3 + lane * 2", "k % 7 - (lane ^ 5)", "select(k < lane, k - 1, min(k, lane) << 2)",
        "max(k, 3) // max(1, lane) | 8", "select(lane == 0, 0, 100 // max(lane, 1)) & k",
        "select(k <= 2 and not (lane != 4) or k == 7, k >> 1, lane)"}) {
    const Result<term::Term> t = term::parse(pool, text);
    ASSERT_TRUE(t) << to_text(t.error());
    const std::optional<Expression> e = Expression::compile(*t);
    ASSERT_TRUE(e);
    EXPECT_TRUE(e->uses(pool.find("lane")));
    Frame frame(2);
    for (int64_t k = -40; k < 40; k += 3)
      for (int64_t lane = 0; lane < 32; ++lane) {
        frame[pool.find("lane")->index] = lane;
        frame[pool.find("k")->index] = k;
        const Result<int64_t> meant =
            term::evaluate(*t, term::Assignment{.symbols = {{"lane", lane}, {"k", k}}});
        ASSERT_TRUE(meant) << to_text(meant.error());
        EXPECT_EQ((*e)(frame), *meant) << text << " at k = " << k << ", lane = " << lane;
      }
  }
}

TEST(SimulateExpression, DoesNotWrap) {
  term::Pool pool;
  ASSERT_TRUE(pool.parameter("n"));
  const std::optional<Expression> e = Expression::compile(*term::parse(pool, "n * n"));
  EXPECT_EQ((*e)({int64_t{1} << 31}), int64_t{1} << 62);
  EXPECT_THROW(static_cast<void>((*e)({int64_t{1} << 32})), Overflow);
}

TEST(SimulateExpression, RefusesReads) {
  term::Pool pool;
  ASSERT_TRUE(pool.memory("perm", 1));
  EXPECT_FALSE(Expression::compile(*term::parse(pool, "perm[3] + 1")));
}

}  // namespace
}  // namespace tessera::simulate
