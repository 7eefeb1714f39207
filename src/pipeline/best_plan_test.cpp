#include "pipeline/best_plan.h"

#include <gtest/gtest.h>

#include "pipeline/testing/product.h"

namespace tessera::pipeline {
namespace {

/// A product of n x n matrices, and a relu of its result.
graph::Graph product_and_relu(int64_t n) {
  return testing::product_and("aten.relu.default", n, Precision::bf16, DType::bfloat16);
}

TEST(BestPlan, WhatInductorFusesCostsLessThanOneByOne) {
  const graph::Graph g = product_and_relu(4096);
  const arch::Arch& arch = **arch::find("sm_90a");
  EXPECT_DOUBLE_EQ(fused_share(g, arch, 1.0, 1.0), 1);
  EXPECT_DOUBLE_EQ(fused_share(g, arch, 1.0, 1.2), 1);
  // The product takes 0.14 to 0.19 ms whoever runs it: of 0.5 ms that eager takes for the rest,
  // half is left.
  const double half = fused_share(g, arch, 0.66, 0.41);
  EXPECT_GT(half, 0.45);
  EXPECT_LT(half, 0.55);
  EXPECT_DOUBLE_EQ(fused_share(g, arch, 10, 0.01), 0.1);
  EXPECT_LT(half, 0.41 / 0.66);  // less than of the whole module
}

TEST(BestPlan, AGainOverOpsThatAreFusedIsHardlyOne) {
  EXPECT_DOUBLE_EQ(gain_over_plan(0.6, 1.0, 1.0), 0.6);  // one by one is what the plan pays
  EXPECT_DOUBLE_EQ(gain_over_plan(0.6, 1.0, 0.5), 0.1);
  EXPECT_DOUBLE_EQ(gain_over_plan(0.6, 1.0, 0.4), 0.03);
  EXPECT_DOUBLE_EQ(gain_over_plan(0.1, 0.4, 0.5), 0.1);  // a kernel is better than the plan already
}

TEST(BestPlan, ProductsAreTheLibraries) {
  const graph::Graph g = product_and_relu(64);
  rules::Pattern p;
  p.computing = {g.order.at(1)};
  EXPECT_FALSE(is_of_products(g, p));
  p.computing = g.order;
  EXPECT_TRUE(is_of_products(g, p));
}

}  // namespace
}  // namespace tessera::pipeline
