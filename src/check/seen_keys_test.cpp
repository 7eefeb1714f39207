// What a meaning hides, as bounds that hold for all rows and keys.
#include "check/seen_keys.h"

#include <gtest/gtest.h>

#include "core/builder.h"

namespace tessera::check {
namespace {

struct Seen {
  core::Builder b{"seen", 32, 2};
  Term keys = b.parameter("KEYS", 1, 1 << 20);
  core::Kernel kernel = *b.finish();
  Term turn = *kernel.pool->counter("turn", kernel.pool->constant(0), keys);
  SeenKeys seen{kernel, {}, turn * 16};
  Term either(term::Op op, Term a, int64_t b) {
    return kernel.pool->must(op, {a, kernel.pool->constant(b)});
  }
};

TEST(CheckSeenKeys, ARowsEndIsLinear) {
  Seen s;
  const auto hidden =
      s.seen.hidden(64, [&](Term row, Term key) { return less_equal(key + 3, s.keys + row * 2); });
  ASSERT_TRUE(hidden);
  ASSERT_EQ(hidden->size(), 1U);
  const SeenKeys::Hidden& h = hidden->front();
  // KEYS - 16 * turn <= -2 * row + column + 2
  EXPECT_FALSE(h.at_least);
  EXPECT_EQ(h.number, 2);
  EXPECT_EQ(h.by_row, -2);
  EXPECT_EQ(h.by_column, 1);
}

/// The lesser of two ends is a bound of each.
TEST(CheckSeenKeys, OfTwoEndsEachIsABound) {
  Seen s;
  const auto hidden = s.seen.hidden(
      64, [&](Term row, Term key) { return less(key, s.keys + s.either(term::Op::min, row, 7)); });
  ASSERT_TRUE(hidden);
  ASSERT_EQ(hidden->size(), 2U);
  EXPECT_EQ((*hidden)[0].by_row + (*hidden)[1].by_row, -1);
}

/// Of rows 0, 1 and 5 they are those of a bound that is linear.
TEST(CheckSeenKeys, ABoundThatIsNotLinearIsNone) {
  Seen s;
  EXPECT_FALSE(s.seen.hidden(
      64, [&](Term row, Term key) { return less(key, s.keys + row * (row - 1) * (row - 5)); }));
  EXPECT_FALSE(s.seen.hidden(
      64, [&](Term row, Term key) { return less(key, s.keys + s.either(term::Op::max, row, 7)); }));
  EXPECT_FALSE(s.seen.hidden(
      64, [&](Term row, Term key) { return less(floor_mod(key, 32) + row, s.keys); }));
}

}  // namespace
}  // namespace tessera::check
