#include "simulate/simulate.h"

#include <gtest/gtest.h>

#include "core/testing/gemm.h"

namespace tessera::simulate {
namespace {

TEST(Simulate, Product) {
  const auto k = core::testing::gemm({.bm = 64, .bn = 64, .bk = 16, .stages = 2});
  ASSERT_TRUE(k) << to_text(k.error());
  Launch l{.parameters = {{"M", 64}, {"N", 64}, {"K", 32}}};
  l.inputs["A"].assign(64 * 32, 1);
  l.inputs["B"].assign(64 * 32, 1);
  const auto o = simulate(*k, l);
  ASSERT_TRUE(o) << to_text(o.error());
  for (const Diagnostic& d : o->findings) ADD_FAILURE() << to_text(d);
  EXPECT_EQ(o->outputs.at("C")[5], 32);
}

}  // namespace
}  // namespace tessera::simulate
