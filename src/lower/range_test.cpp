#include "lower/range.h"

#include <gtest/gtest.h>

#include "core/builder.h"
#include "core/deal.h"

namespace tessera::lower {
namespace {

using core::Builder;
using term::Op;
using term::Term;

void expect_range(Ranges& ranges, Term t, int64_t low, int64_t high) {
  const Range r = ranges.of(t);
  EXPECT_TRUE(r.low == low && r.high == high)
      << term::to_string(t) << ": " << static_cast<double>(r.low) << " to "
      << static_cast<double>(r.high);
}

TEST(LowerRange, OperatorsOnBounds) {
  Builder b("k", 128);
  const Term m = b.parameter("m", -5, 11), n = b.parameter("n", 1, 9);
  Ranges ranges(b.kernel());
  expect_range(ranges, m + n, -4, 18);
  expect_range(ranges, m - n, -13, 9);
  expect_range(ranges, m * n, -40, 80);
  expect_range(ranges, floor_div(m, n), -5, 10);
  expect_range(ranges, floor_mod(m, n), 0, 7);
  expect_range(ranges, floor_mod(n, 64), 1, 8);
  expect_range(ranges, b.make(Op::shift_left, {m, b.number(3)}), -40, 80);
  expect_range(ranges, bit_xor(n, b.number(4)), 0, 15);
  expect_range(ranges, b.make(Op::min, {m, n}), -5, 8);
  expect_range(ranges, b.select(less(m, n), m, b.number(100)), -5, 100);
  expect_range(ranges, less(m, n), 0, 1);
}

TEST(LowerRange, DealtItemsStayBelowTheirNumber) {
  for (const bool alternates : {false, true}) {
    Builder b("k", 128);
    const Term n = b.parameter("n", 1, 1000);
    b.kernel().grid = b.make(Op::min, {b.at().multiprocessors, n});
    const core::Deal deal{n, b.at().block, b.at().blocks, alternates};
    b.loop("turn", b.number(0), core::rounds_of(deal), b.number(1), [&](Term turn) {
      Ranges ranges(b.kernel());
      expect_range(ranges, core::item_of(deal, turn), 0, 998);
    });
  }
}

TEST(LowerRange, WhatLeaves64BitsIsSeen) {
  Builder b("k", 128);
  const Term big = b.parameter("big", 0, int64_t{1} << 62);
  const Term open = b.take(b.kernel().pool->parameter("open"));
  Ranges ranges(b.kernel());
  EXPECT_TRUE(ranges.of(big + big).fits_long());
  EXPECT_FALSE(ranges.of(big * 4).fits_long());
  EXPECT_FALSE(ranges.of(open).fits_long());
  EXPECT_FALSE(ranges.of(open * open * open).fits_long());
}

/// Items are dealt out in steps of the grid: without the loop's bound they might reach 2^57.
TEST(LowerRange, DealtItemsStayBelowWhatThereIs) {
  Builder b("k", 128);
  const Term items = b.parameter("items", 1, 1 << 25);
  const Term step = b.at().blocks;
  const Term turns = b.make(Op::divide, {items - b.at().block + step - 1, step});
  const Term turn = b.take(b.kernel().pool->counter("turn", b.number(0), turns));
  b.kernel().grid = b.make(Op::min, {b.at().multiprocessors, items});
  Ranges ranges(b.kernel());
  expect_range(ranges, step, 1, (1 << 16) - 1);
  EXPECT_TRUE(ranges.of(b.at().block + turn * step).fits_int());
  EXPECT_FALSE(ranges.of(turn * turn).fits_int());
}

/// Items of several extents: divided by the inner ones, they stay below the outer one.
TEST(LowerRange, DealtItemsHaveTheRangesOfTheirExtents) {
  Builder b("k", 128);
  const Term l = b.parameter("l", 1, 1 << 16), rows = b.parameter("rows", 1, 1 << 14);
  const Term columns = b.parameter("columns", 1, 1 << 14);
  const Term items = l * (rows * columns), step = b.at().blocks;
  const Term turns = b.make(Op::divide, {items - b.at().block + step - 1, step});
  const Term turn = b.take(b.kernel().pool->counter("turn", b.number(0), turns));
  b.kernel().grid = b.make(Op::min, {b.at().multiprocessors, items});
  const Term item = b.at().block + turn * step, rest = floor_mod(item, rows * columns);
  Ranges ranges(b.kernel());
  expect_range(ranges, floor_div(item, rows * columns), 0, (1 << 16) - 2);
  expect_range(ranges, floor_div(rest, columns * 8), 0, ((1 << 14) - 2) / 8);
  // A divisor that is no factor tells nothing of the kind.
  EXPECT_FALSE(ranges.of(floor_div(item, l + 1)).within(0, 1 << 28));
}

}  // namespace
}  // namespace tessera::lower
