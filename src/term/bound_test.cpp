// Bounds of sums: what they prove, what they must not prove, and random sums against enumeration.
#include "term/bound.h"

#include <gtest/gtest.h>

#include "term/rules.h"
#include "term/testing/agreement.h"

namespace tessera::term {
namespace {

class BoundTest : public ::testing::Test {
 protected:
  void SetUp() override {
    (void)pool.coordinate("x", 64).value();
    (void)pool.parameter("M").value();
    const Term n = pool.parameter("N", {.lower = pool.constant(1)}).value();
    (void)pool.parameter("K", {.lower = pool.constant(0)}).value();
    (void)pool.counter("k", pool.constant(0), n).value();
    (void)pool.counter("t", pool.constant(0), parse(pool, "K // 64").value()).value();
    (void)pool.counter("down", n, Term()).value();
    (void)pool.memory("perm", 1, {.lower = pool.constant(0), .upper = n}).value();
  }
  bool proves(const char* low, const char* high) {
    return proves_less_equal(pool, sum_of(simplify(parse(pool, low).value())),
                             sum_of(simplify(parse(pool, high).value())));
  }
  Pool pool;
};

TEST_F(BoundTest, SymbolicBoundsReplaceWhatTheyBound) {
  EXPECT_TRUE(proves("k + 1", "N"));
  EXPECT_FALSE(proves("k + 2", "N"));
  EXPECT_TRUE(proves("N", "down"));
  EXPECT_FALSE(proves("N + 1", "down"));
  EXPECT_TRUE(proves("64 * t + 64", "K"));
  EXPECT_FALSE(proves("64 * t + 65", "K"));
  EXPECT_TRUE(proves("64 * t + x", "K - 1"));
  EXPECT_TRUE(proves("perm[x] + 1", "N"));
  EXPECT_FALSE(proves("perm[x]", "0"));
}

TEST_F(BoundTest, QuotientsRemaindersAndChoicesTurnIntoTheirOperands) {
  EXPECT_TRUE(proves("M // 4 * 4", "M"));
  EXPECT_TRUE(proves("M - 3", "M // 4 * 4"));
  EXPECT_FALSE(proves("M - 2", "M // 4 * 4"));
  EXPECT_TRUE(proves("M % N + 1", "N"));
  EXPECT_TRUE(proves("min(M, x)", "M"));
  EXPECT_TRUE(proves("M", "max(M, x)"));
  EXPECT_FALSE(proves("max(M, x)", "M"));
  EXPECT_TRUE(proves("max(0, K - 5)", "K"));
  EXPECT_FALSE(proves("max(1, K - 5)", "K"));
  EXPECT_TRUE(proves("select(M == 3, K, K - x)", "K"));
  EXPECT_FALSE(proves("select(M == 3, K, K + x)", "K"));
}

TEST_F(BoundTest, AFactorIsReplacedOnlyBesideFactorsThatAreNotNegative) {
  EXPECT_TRUE(proves("K * k + K", "K * N"));
  EXPECT_FALSE(proves("M * k + M", "M * N"));  // M may be negative
}

TEST(Bound, NothingIsProvedThatAPointRefutes) {
  testing::RandomTerms random(8);
  int proved = 0, sharp = 0;
  for (int i = 0; i < 3000; ++i) {
    if (i % 8 == 0) random.renew();
    Pool& pool = random.pool();
    const Term t = simplify(random.number(3) - random.number(2));
    for (const int64_t bound : {-8, -1, 0, 1, 5}) {
      if (!proves_at_least(pool, sum_of(t), bound)) continue;
      ++proved;
      sharp += facts_of_sum(sum_of(t)).at_least(bound) ? 0 : 1;
      int64_t compared = 0;
      ASSERT_EQ(
          testing::disagreement(less_equal(pool.constant(bound), t), pool.truth(true), compared),
          "");
    }
  }
  EXPECT_GT(proved, 1000);
  EXPECT_GT(sharp, 10);  // beyond what intervals say
}

}  // namespace
}  // namespace tessera::term
