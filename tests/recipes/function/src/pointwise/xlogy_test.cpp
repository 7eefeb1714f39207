#include <cmath>
#include <gtest/gtest.h>

#include "pointwise/pointwise.h"

namespace tessera::pointwise {
namespace {

TEST(Xlogy, IsZeroWhereXIs) {
  const Function& f = *find("xlogy");
  const auto at = [&](double x, double y) {
    const double arguments[] = {x, y};
    return f.eval(std::span(arguments));
  };
  EXPECT_DOUBLE_EQ(at(2, std::exp(3.0)), 6);
  EXPECT_EQ(at(0, 0), 0);
  EXPECT_TRUE(std::isnan(at(0, NAN)));
}

}  // namespace
}  // namespace tessera::pointwise
