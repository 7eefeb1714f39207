#include "lower/instruction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera::lower {
namespace {

using By = Passed::By;
using ::testing::HasSubstr;
using ::testing::Not;

const arch::Form& form(const char* name) {
  return *arch::find_form(name);
}

TEST(LowerInstruction, OneFunctionAFormAndWayOfPassing) {
  Names names;
  Instructions all(names);
  const Passed barrier{By::value, "uint32_t", {"full + 8"}};
  const Passed parity{By::value, "uint32_t", {"k & 1"}};
  EXPECT_EQ(*all.call(form("mbarrier.wait"), {}, {barrier, parity}),
            "mbarrier_wait(full + 8, k & 1);");
  const std::string once = all.functions();
  EXPECT_THAT(once, HasSubstr("void mbarrier_wait(uint32_t barrier, uint32_t parity)"));
  EXPECT_THAT(once, HasSubstr(": \"memory\""));
  EXPECT_TRUE(all.call(form("mbarrier.wait"), {}, {barrier, parity}));
  EXPECT_EQ(all.functions(), once);
}

TEST(LowerInstruction, ConstantsAndArraysAndFloats) {
  Names names;
  Instructions all(names);
  EXPECT_EQ(*all.call(form("wgmma.wait"), {}, {{By::constant, "int", {"1"}}}), "wgmma_wait<1>();");
  EXPECT_EQ(*all.call(form("stmatrix"), {{"matrices", "2"}},
                      {{By::value, "uint32_t", {"at"}}, {By::pointer, "uint32_t", {"out + 2"}}}),
            "stmatrix_2(at, out + 2);");
  EXPECT_THAT(all.functions(), HasSubstr("\"r\"(from[0]), \"r\"(from[1])"));
  // A shuffle moves 32 bits of either kind; it touches no memory, but waits for other lanes.
  const Passed number{By::value, "uint32_t", {"1"}};
  ASSERT_TRUE(all.call(
      form("shuffle"), {{"mode", "bfly"}},
      {{By::reference, "float", {"a"}}, {By::value, "float", {"b"}}, number, number, number}));
  EXPECT_THAT(all.functions(), HasSubstr("\"=f\"(to)"));
  EXPECT_THAT(all.functions(), HasSubstr("\"f\"(from), \"r\"(by)"));
}

TEST(LowerInstruction, ProductsTakeFloatsAsBits) {
  Names names;
  Instructions all(names);
  const Passed one{By::constant, "int", {"1"}};
  ASSERT_TRUE(all.call(form("wgmma.f32.tf32.tf32.rs"), {{"n", "8"}},
                       {{By::pointer, "float", {"sums"}},
                        {By::pointer, "float", {"a + 4"}},
                        {By::value, "uint64_t", {"b"}},
                        {By::value, "uint32_t", {"1"}},
                        one,
                        one}));
  EXPECT_THAT(all.functions(), HasSubstr("\"+f\"(d[0])"));
  EXPECT_THAT(all.functions(), HasSubstr("\"r\"(__float_as_uint(a[0]))"));
}

TEST(LowerInstruction, RefusesModifiersThatTheFormLacks) {
  Names names;
  Instructions all(names);
  EXPECT_FALSE(all.call(form("wgmma.fence"), {{"n", "8"}}, {}));
}

}  // namespace
}  // namespace tessera::lower
