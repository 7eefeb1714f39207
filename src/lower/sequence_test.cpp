// Kernels in one library: what passes from one to another, and what is refused.
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

/// Reads 32 elements of two tensors, and stores those of the first.
core::Kernel takes_two(const std::string& name) {
  core::Builder b(name, 32);
  const core::Term n = b.parameter("N", 32, 4096, 1);
  std::vector<core::RegistersId> values;
  for (const char* from : {"A", "B"}) {
    const core::TensorId x = b.tensor({from, DType::float32, {n}, {b.number(1)}, Access::input});
    values.push_back(b.registers(std::string("v") + from, DType::float32, {32}, Layout(32, 1)));
    b.issue("load.global.4",
            {core::Slice{values.back(), b.number(0)}, core::GlobalAt{x, {b.at().lane}}});
  }
  const core::TensorId y = b.tensor({"Y", DType::float32, {n}, {b.number(1)}, Access::output});
  b.issue("store.global.4",
          {core::GlobalAt{y, {b.at().lane}}, core::Slice{values[0], b.number(0)}});
  return *b.finish();
}

TEST(LowerSequence, WhatIsPassedLiesInTheWorkspace) {
  const core::Kernel first = copies("first", "X", "P"), second = copies("second", "P", "Y");
  const auto out = lower(
      {.kernels = {&first, &second}, .passed = {{0, "P", 1, "P"}}, .agree = {{0, "N", 1, "N"}}},
      Options{.describe_name = "both"});
  ASSERT_TRUE(out) << to_text(out.error());
  EXPECT_THAT(out->ints, ElementsAre("first_N", "first_X_tensor", "first_X_offset", "second_N",
                                     "second_Y_tensor", "second_Y_offset"));
  for (const char* text :
       {"void* P = passed[0];", "launch->ints[0] != launch->ints[3]", "launch->ints + 3, 3}",
        "void* const passed1[] = {static_cast<char*>(workspace) + at0};",
        "if (tessera_kernel1::run(&part1, passed1, stream)) return -1;",
        "const int64_t bytes0 = tessera_kernel0::workspace_size(&part0);"})
    EXPECT_THAT(out->text, HasSubstr(text));
}

/// Kernels that take what two others leave, under names of their own.
TEST(LowerSequence, EachTensorThatIsPassedHasAPlace) {
  const core::Kernel first = copies("first", "X", "P"), second = copies("second", "X", "Q"),
                     sum = takes_two("sum");
  const auto out = lower({.kernels = {&first, &second, &sum},
                          .passed = {{0, "P", 2, "A"}, {1, "Q", 2, "B"}},
                          .agree = {{0, "N", 2, "N"}, {1, "N", 2, "N"}}},
                         Options{.describe_name = "three"});
  ASSERT_TRUE(out) << to_text(out.error());
  EXPECT_THAT(out->ints, ElementsAre("first_N", "first_X_tensor", "first_X_offset", "second_N",
                                     "second_X_tensor", "second_X_offset", "sum_N", "sum_Y_tensor",
                                     "sum_Y_offset"));
  for (const char* text : {"const int64_t at1 = at0 + bytes0;", "const int64_t at2 = at1 + bytes1;",
                           "void* const passed2[] = {static_cast<char*>(workspace) + at0,",
                           "static_cast<char*>(workspace) + at1};", "void* A = passed[0];",
                           "void* B = passed[1];", "return at2 + bytes2;"})
    EXPECT_THAT(out->text, HasSubstr(text));
}

TEST(LowerSequence, RefusesWhatDoesNotPass) {
  const core::Kernel first = copies("first", "X", "P");
  const auto code = [&](const core::Kernel& second, std::vector<Sequence::Passed> passed) {
    const auto out = lower({.kernels = {&first, &second}, .passed = std::move(passed)}, {});
    return out ? std::string() : out.error().code;
  };
  const core::Kernel takes = copies("second", "P", "Y");
  EXPECT_EQ(code(takes, {{0, "P", 1, "P"}}), "");
  EXPECT_EQ(code(takes, {}), bad_launch.id);
  EXPECT_EQ(code(takes, {{0, "P", 1, "P"}, {0, "P", 1, "P"}}), bad_launch.id);
  EXPECT_EQ(code(takes, {{1, "Y", 0, "X"}}), bad_launch.id);
  EXPECT_EQ(code(takes, {{0, "P", 2, "P"}}), bad_launch.id);
  EXPECT_EQ(code(takes, {{0, "X", 1, "P"}}), bad_launch.id);
  EXPECT_EQ(code(copies("second", "Q", "Y"), {{0, "P", 1, "P"}}), bad_launch.id);
  EXPECT_EQ(code(copies("second", "Q", "P"), {{0, "P", 1, "P"}}), bad_launch.id);
  EXPECT_EQ(code(copies("second", "P", "Y", DType::int32), {{0, "P", 1, "P"}}), bad_launch.id);
  EXPECT_EQ(code(copies("first", "P", "Y"), {{0, "P", 1, "P"}}), bad_launch.id);
}

}  // namespace
}  // namespace tessera::lower
