// What the checker leaves open is no proof.
#include "realize/common/proof.h"

#include <gtest/gtest.h>

#include "core/builder.h"

namespace tessera::realize {
namespace {

TEST(Proof, OfAKernelThatStatesNoMeaningIsNone) {
  core::Builder b("idle", 128);
  Result<core::Kernel> k = b.finish();
  ASSERT_TRUE(k) << to_text(k.error());
  const auto proof = proof_of(std::make_shared<const core::Kernel>(std::move(*k)))();
  ASSERT_FALSE(proof);
  EXPECT_EQ(proof.error().code, "TS0415") << to_text(proof.error());
}

}  // namespace
}  // namespace tessera::realize
