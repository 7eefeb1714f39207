#include "pointwise/approximate.h"

#include <gtest/gtest.h>

namespace tessera::pointwise {
namespace {

TEST(Approximate, FollowsTheBitsOfTheResult) {
  const std::string text = "t = tsr_silu(x) + tsr_exp(y) + tsr_log(z);";
  EXPECT_EQ(approximated(text, 8), "t = tsb_silu(x) + tsf_exp(y) + tsr_log(z);");
  EXPECT_EQ(approximated(text, 11), "t = tsf_silu(x) + tsf_exp(y) + tsr_log(z);");
  EXPECT_EQ(approximated(text, 24), text);
  EXPECT_EQ(approximated("tsr_tanh(tsr_tanh_approx(x))", 24), "tsr_tanh(tsb_tanh(x))");
}

}  // namespace
}  // namespace tessera::pointwise
