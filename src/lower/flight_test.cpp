#include "lower/flight.h"

#include <gtest/gtest.h>

namespace tessera::lower {
namespace {

TEST(LowerFlight, AWaitLeavesTheLastGroups) {
  Flight f;
  f.product(1);
  EXPECT_TRUE(f.has(1));
  f.commit();
  f.product(2);
  f.product(3);
  f.commit();
  f.wait(1);
  EXPECT_FALSE(f.has(1));
  EXPECT_TRUE(f.has(2) && f.has(3));
  f.wait(0);
  EXPECT_FALSE(f.has(2));
}

TEST(LowerFlight, OfTwoWaysOnlyWhatBothHave) {
  Flight one, other;
  for (Flight* f : {&one, &other}) {
    f->product(1);
    f->commit();
  }
  one.product(2);
  one.commit();
  other.meet(one);  // the last group of one has 2, of the other 1
  EXPECT_FALSE(other.has(1) || other.has(2));
  Flight same = one;
  same.meet(one);
  EXPECT_TRUE(same.has(1) && same.has(2));
  same.forget();
  EXPECT_FALSE(same.has(1));
}

}  // namespace
}  // namespace tessera::lower
