#include "lower/names.h"

#include <gtest/gtest.h>

namespace tessera::lower {
namespace {

TEST(LowerNames, AreIdentifiersEachOnce) {
  Names names;
  EXPECT_EQ(names.claim("acc"), "acc");
  EXPECT_EQ(names.claim("acc"), "acc_2");
  EXPECT_EQ(names.claim("tma.load.2"), "tma_load_2");
  EXPECT_EQ(names.claim("3d"), "v3d");
  EXPECT_EQ(names.claim("for"), "for_2");
  EXPECT_EQ(names.claim(""), "_");
}

}  // namespace
}  // namespace tessera::lower
