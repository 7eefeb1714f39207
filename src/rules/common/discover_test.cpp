#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "arch/arch.h"
#include "rules/common/testing.h"
#include "rules/gemm.h"

namespace tessera::rules {
namespace {

using namespace testing;

const arch::Arch& hopper() {
  return **arch::find("sm_90a");
}

TEST(Discover, MiniGptBlock) {
  GraphBuilder b;
  const ValueId x = b.input("x", {128, 512, 768});
  b.output(transformer_block(b, x, 8));
  const Discovery d = discover(b.g, hopper());
  std::puts(to_table(b.g, d).c_str());
  EXPECT_EQ(of_rule(d, "attention").size(), 1u);
  EXPECT_EQ(of_rule(d, "row_norm").size(),
            3u);                             // the second norm with and without the residual add
  EXPECT_EQ(of_rule(d, "gemm").size(), 7u);  // three with an epilogue, each also bare; qkv
  EXPECT_TRUE(d.uncovered.empty());
}

}  // namespace
}  // namespace tessera::rules
