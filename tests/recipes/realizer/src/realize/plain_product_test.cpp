#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "realize/realize.h"
#include "realize/testing/problem_json.h"

namespace tessera::realize {
namespace {

const Realizer& plain_product() {
  for (const Realizer* r : all())
    if (r->name == "plain_product") return *r;
  throw std::logic_error("no such realizer");
}

Result<Space> space_of(const char* dtype, const char* arch) {
  const Json problem = {
      {"m", 8}, {"n", 16}, {"k", 24}, {"dtype", dtype}, {"out_dtype", dtype}, {"epilogue", "bias"}};
  return plain_product().realize(testing::pattern_of(problem), graph::Graph{}, **arch::find(arch));
}

TEST(PlainProduct, WritesOneSourceForTheHost) {
  const auto space = space_of("float32", "host");
  ASSERT_TRUE(space) << to_text(space.error());
  ASSERT_EQ(space->candidates.size(), 1u);
  EXPECT_THAT(space->candidates[0].source->text, ::testing::HasSubstr("k < 24"));
}

TEST(PlainProduct, RefusesOtherTypesAndMachines) {
  EXPECT_EQ(space_of("bfloat16", "host").error().code, "TS0499");
  EXPECT_EQ(space_of("float32", "sm_90a").error().code, "TS0499");
}

}  // namespace
}  // namespace tessera::realize
