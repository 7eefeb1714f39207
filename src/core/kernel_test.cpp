#include "core/kernel.h"

#include <gtest/gtest.h>

#include "core/builder.h"
#include "core/testing/attention.h"
#include "core/testing/gemm.h"

namespace tessera::core {
namespace {

TEST(CoreKernel, ProductHasItsStorages) {
  const Result<Kernel> k = testing::gemm();
  ASSERT_TRUE(k) << to_text(k.error());
  EXPECT_EQ(k->threads, 384);
  ASSERT_EQ(k->shared.size(), 3u);
  EXPECT_EQ(k->shared[1].at, 4 * 128 * 64 * 2);
  EXPECT_EQ(k->shared_bytes(), 4 * (128 + 256) * 64 * 2 + 2 * 2 * 64 * 64 * 2 + 2 * 4 * 8);
  EXPECT_EQ(k->body.size(), 4u);
}

TEST(CoreKernel, AttentionHasItsStorages) {
  for (bool causal : {false, true}) {
    const Result<Kernel> k = testing::attention({.causal = causal});
    ASSERT_TRUE(k) << to_text(k.error());
    // Queries, two slots of keys and of values, 128 rows of 256 bytes each; nine barriers.
    EXPECT_EQ(k->shared_bytes(), 5 * 128 * 256 + 9 * 8);
    EXPECT_EQ(k->registers.size(), 9u);
  }
}

TEST(CoreBuilder, KeepsTheFirstFailure) {
  Builder b("k", 128);
  b.issue("no.such");
  b.issue("neither");
  const Result<Kernel> k = b.finish();
  ASSERT_FALSE(k);
  EXPECT_EQ(k.error().code, "TS0811");
  EXPECT_EQ(k.error().message, "there is no instruction `no.such`");
}

}  // namespace
}  // namespace tessera::core
