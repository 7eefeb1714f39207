// Terms that are the same from a turn on, and such as differ late.
#include "check/steady.h"

#include <gtest/gtest.h>

namespace tessera::check {
namespace {

struct Turns {
  term::Pool pool;
  Term zero = pool.constant(0), count = *pool.parameter("count", {.lower = zero});
  Term turn = *pool.counter("turn", zero, count), lane = *pool.coordinate("lane", 32);
  Term make(term::Op op, Term a, int64_t b) { return pool.must(op, {a, pool.constant(b)}); }
  bool steady(Term t, int64_t from = 2) { return steady_from(t, turn, from); }
};

TEST(CheckSteady, WhatDiffersInTheFirstTurnsAlone) {
  Turns t;
  EXPECT_TRUE(t.steady(less(t.zero, t.turn)));
  EXPECT_FALSE(t.steady(less(t.zero, t.turn), 0));
  EXPECT_TRUE(t.steady(t.make(term::Op::equal, t.turn, 1)));
  EXPECT_TRUE(t.steady(t.make(term::Op::min, t.turn, 2) + t.lane));
  EXPECT_TRUE(t.steady(logical_and(less(t.zero, t.turn), less(t.lane, t.pool.constant(4)))));
  EXPECT_TRUE(t.steady(t.turn - t.turn + t.lane));
}

TEST(CheckSteady, WhatDiffersLaterIsNot) {
  Turns t;
  EXPECT_FALSE(t.steady(t.turn));
  EXPECT_FALSE(t.steady(t.make(term::Op::less, t.turn, 4)));
  EXPECT_FALSE(t.steady(t.make(term::Op::less, t.turn, 1 << 20)));
  EXPECT_FALSE(t.steady(t.make(term::Op::remainder, t.turn, 2)));
  EXPECT_FALSE(t.steady(t.make(term::Op::divide, t.turn, 1 << 20)));
  EXPECT_FALSE(t.steady(t.make(term::Op::shift_right, t.turn, 9)));
  EXPECT_FALSE(t.steady(less(t.turn, t.lane)));
  EXPECT_FALSE(t.steady(less(t.turn, t.count)));
}

}  // namespace
}  // namespace tessera::check
