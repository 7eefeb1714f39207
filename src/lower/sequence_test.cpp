// Two kernels in one library: what passes from one to the other, and what is refused.
#include "lower/sequence.h"

#include <gmock/gmock.h>

#include "core/builder.h"
#include "lower/codes.h"

namespace tessera::lower {
namespace {

using core::Access;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Copies 32 elements of a tensor to another one.
core::Kernel copies(const std::string& name, const std::string& from, const std::string& to,
                    DType type = DType::float32) {
  core::Builder b(name, 32);
  const core::Term n = b.parameter("N", 32, 4096, 1);
  const core::TensorId x = b.tensor({from, type, {n}, {b.number(1)}, Access::input});
  const core::TensorId y = b.tensor({to, type, {n}, {b.number(1)}, Access::output});
  const core::RegistersId v = b.registers("v", type, {32}, Layout(32, 1));
  const int bytes = size_of(type);
  b.issue(fmt::format("load.global.{}", bytes),
          {core::Slice{v, b.number(0)}, core::GlobalAt{x, {b.at().lane}}});
  b.issue(fmt::format("store.global.{}", bytes),
          {core::GlobalAt{y, {b.at().lane}}, core::Slice{v, b.number(0)}});
  return *b.finish();
}

TEST(LowerSequence, WhatIsBetweenLiesInTheWorkspace) {
  const core::Kernel first = copies("first", "X", "P"), second = copies("second", "P", "Y");
  const auto out = lower({.first = first, .second = second, .between = "P", .agree = {{"N", "N"}}},
                         Options{.describe_name = "both"});
  ASSERT_TRUE(out) << to_text(out.error());
  EXPECT_THAT(out->ints, ElementsAre("first_N", "first_X_tensor", "first_X_offset", "second_N",
                                     "second_Y_tensor", "second_Y_offset"));
  for (const char* text :
       {"void* P = static_cast<char*>(workspace) + 0;", "launch->ints[0] != launch->ints[3]",
        "launch->ints + 3, 3}", "return tessera_second::run(&second, workspace, stream);",
        "const int64_t bytes = tessera_first::workspace_size(&first);"})
    EXPECT_THAT(out->text, HasSubstr(text));
}

TEST(LowerSequence, RefusesWhatDoesNotPass) {
  const core::Kernel first = copies("first", "X", "P");
  const auto code = [&](const core::Kernel& second, const std::string& between = "P") {
    const auto out = lower({.first = first, .second = second, .between = between, .agree = {}}, {});
    return out ? std::string() : out.error().code;
  };
  EXPECT_EQ(code(copies("second", "P", "Y")), "");
  EXPECT_EQ(code(copies("second", "Q", "Y")), bad_launch.id);
  EXPECT_EQ(code(copies("second", "Q", "P")), bad_launch.id);
  EXPECT_EQ(code(copies("second", "P", "Y", DType::int32)), bad_launch.id);
  EXPECT_EQ(code(copies("first", "P", "Y")), bad_launch.id);
  EXPECT_EQ(code(copies("second", "P", "Y"), "X"), bad_launch.id);
}

}  // namespace
}  // namespace tessera::lower
