#include "skeleton/common/called.h"

#include <gtest/gtest.h>

namespace tessera::skeleton {
namespace {

constexpr const char* library = R"(#include <cmath>
TSR_FN float tsr_one(float x) { return x; }
TSR_FN float tsr_two(float x) {  // of one
  const float y = tsr_one(x);
  return y * 2;
}
#ifdef FAST
TSR_FN float tsr_three(float x) { return x * 3; }
#else
TSR_FN float tsr_three(float x) { return tsr_two(x) + x; }
#endif
TSR_FN float tsr_three_more(float x) { return x + 3; }
)";

TEST(SkeletonCalled, FunctionsThatNothingCallsAreLeftOut) {
  EXPECT_EQ(called(library, "store(tsr_two(x))"), R"(#include <cmath>
TSR_FN float tsr_one(float x) { return x; }
TSR_FN float tsr_two(float x) {  // of one
  const float y = tsr_one(x);
  return y * 2;
}
#ifdef FAST
#else
#endif
)");
}

TEST(SkeletonCalled, OfEveryBranch) {
  const std::string all = called(library, "tsr_three(x)");
  EXPECT_NE(all.find("x * 3"), std::string::npos);
  EXPECT_NE(all.find("tsr_one(float"), std::string::npos);
  EXPECT_EQ(all.find("tsr_three_more"), std::string::npos);
}

TEST(SkeletonCalled, ANameWithoutACallIsNone) {
  EXPECT_EQ(called(library, "float tsr_one = 1;").find("TSR_FN"), std::string::npos);
}

}  // namespace
}  // namespace tessera::skeleton
