#include "smt/shrink.h"

#include <gtest/gtest.h>

namespace tessera::smt {
namespace {

TEST(Shrink, StopsWhereItHoldsNoLonger) {
  std::vector<Shrinkable> point{{1'000'000, 1, 1}, {-4096, 0, 8}, {77, 77, 1}};
  int tried = 0;
  shrink(point, [&] {
    ++tried;
    return point[0].value >= 300 && point[1].value <= -20 && point[2].value == 77;
  });
  EXPECT_EQ(point[0].value, 300);
  EXPECT_EQ(point[1].value, -24);  // a multiple of 8
  EXPECT_EQ(point[2].value, 77);
  EXPECT_LT(tried, 150);
}

TEST(Shrink, SecondRoundUsesWhatTheFirstGained) {
  std::vector<Shrinkable> point{{100, 0, 1}, {90, 0, 1}};
  // The first may only be small once the second is.
  shrink(point, [&] { return point[0].value >= point[1].value + 5; });
  EXPECT_EQ(point[1].value, 0);
  EXPECT_EQ(point[0].value, 5);
}

TEST(Shrink, WholeRangeDoesNotOverflow) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  std::vector<Shrinkable> point{{most, std::numeric_limits<int64_t>::min(), 1}};
  shrink(point, [&] { return point[0].value >= most - 1; });
  EXPECT_EQ(point[0].value, most - 1);
}

}  // namespace
}  // namespace tessera::smt
