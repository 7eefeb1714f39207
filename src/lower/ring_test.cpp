#include "lower/ring.h"

#include <gtest/gtest.h>

#include "core/builder.h"
#include "term/evaluate.h"

namespace tessera::lower {
namespace {

using core::Builder;

class LowerRing : public ::testing::Test {
 protected:
  Builder b_{"k", 128};
  Term base_ = b_.parameter("base", -3, 1000);
  core::For loop(int64_t step) {
    const Term k = b_.take(b_.kernel().pool->counter("k", b_.number(2), b_.number(40)));
    return {k, b_.number(2), b_.number(40), b_.number(step), false, {}};
  }
};

/// Counting from the first slot and round gives the terms' values on every trip.
TEST_F(LowerRing, CountsWhatTheTermsSay) {
  const core::For l = loop(1);
  const Term use = base_ + l.counter;
  const std::vector<Ring> rings =
      rings_of(l, {floor_mod(use, 5) * 8, floor_mod(floor_div(use, 5) + 1, 2)});
  ASSERT_EQ(rings.size(), 1U);
  const Ring& r = rings.front();
  EXPECT_TRUE(has_variable(rings, floor_mod(use, 5)));
  EXPECT_FALSE(has_variable(rings, floor_mod(use, 7)));
  for (const int64_t base : {-3, 0, 999}) {
    const term::Assignment before{{{"base", base}}, {}, {}};
    int64_t slot = *term::evaluate(r.slot_at_first, before);
    int64_t round = *term::evaluate(r.round_at_first, before);
    for (int64_t k = 2; k < 40; ++k) {
      const term::Assignment at{{{"base", base}, {"k", k}}, {}, {}};
      EXPECT_EQ(slot, *term::evaluate(r.slot.front(), at));
      EXPECT_EQ(round, *term::evaluate(r.round.front(), at));
      if (++slot == r.slots) slot = 0, ++round;
    }
  }
}

TEST_F(LowerRing, LeavesOthersAlone) {
  const core::For one = loop(1);
  const Term k = one.counter;
  EXPECT_TRUE(rings_of(one, {floor_mod(base_ + k, 4)}).empty()) << "a power of two";
  EXPECT_TRUE(rings_of(one, {floor_mod(base_ + k * 2, 5)}).empty()) << "by two";
  EXPECT_TRUE(rings_of(one, {floor_mod(base_ * k + k, 5)}).empty()) << "a base with the counter";
  EXPECT_TRUE(rings_of(one, {floor_mod(base_, 5)}).empty()) << "no counter";
  EXPECT_TRUE(rings_of(loop(2), {floor_mod(base_ + k, 5)}).empty()) << "a loop by two";
}

}  // namespace
}  // namespace tessera::lower
