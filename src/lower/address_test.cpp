#include "lower/address.h"

#include <gtest/gtest.h>

#include "core/builder.h"
#include "lower/codes.h"
#include "term/evaluate.h"

namespace tessera::lower {
namespace {

using core::Builder;

/// The term at every place of two slots of 64 x 64 elements of 2 bytes is the swizzle's formula.
TEST(LowerAddress, IsSwizzledAsTheStorageSays) {
  Builder b("k", 128);
  const Layout layout(IntTuple::flat({2, 64, 64}), IntTuple::flat({4096, 64, 1}));
  const core::SharedId s = b.shared("c", DType::bfloat16, layout, arch::SwizzleMode::bytes_128);
  auto& pool = *b.kernel().pool;
  const Term slot = b.take(pool.coordinate("slot", 2)), row = b.take(pool.coordinate("row", 64)),
             column = b.take(pool.coordinate("column", 64));
  const Term t = byte_of(b.kernel(), core::SharedAt{s, {slot, row, column}});
  const Swizzle swizzle = arch::swizzle_of(arch::SwizzleMode::bytes_128);
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t r = 0; r < 64; ++r)
      for (int64_t c = 0; c < 64; ++c) {
        const term::Assignment at{{{"slot", i}, {"row", r}, {"column", c}}, {}, {}};
        ASSERT_EQ(*term::evaluate(t, at), swizzle(2 * layout.at({i, r, c}))) << i << r << c;
      }
}

TEST(LowerAddress, ModesMayBeNested) {
  Builder b("k", 128);
  const Layout layout(IntTuple::tuple({IntTuple::flat({8, 4}), 16}),
                      IntTuple::tuple({IntTuple::flat({16, 1000}), 1}));
  const core::SharedId s = b.shared("x", DType::float32, layout);
  const Term row = b.take(b.kernel().pool->coordinate("row", 32));
  const Term t = byte_of(b.kernel(), core::SharedAt{s, {row, b.number(3)}});
  for (int64_t r = 0; r < 32; ++r)
    EXPECT_EQ(*term::evaluate(t, {{{"row", r}}, {}, {}}), 4 * layout.at({r, 3}));
}

TEST(LowerAddress, RegistersBeginAtWholeOnes) {
  Builder b("k", 128);
  const core::RegistersId r = b.registers(
      "h", DType::bfloat16, {128, 8}, Layout(IntTuple::flat({128, 8}), IntTuple::flat({1, 128})));
  const Result<Term> whole = register_of(b.kernel(), {r, b.number(6)});
  ASSERT_TRUE(whole);
  EXPECT_EQ(term::to_string(*whole), "3");
  const Result<Term> half = register_of(b.kernel(), {r, b.number(5)});
  ASSERT_FALSE(half);
  EXPECT_EQ(half.error().code, bad_slice.id);
}

TEST(LowerAddress, ConstantsStandApart) {
  Builder b("k", 128);
  const Term n = b.parameter("n", 0, 100);
  const SplitSum s = split_sum(n * 8 + 6);
  EXPECT_EQ(s.constant, 6);
  EXPECT_EQ(term::to_string(s.rest), "8 * n");
  EXPECT_FALSE(split_sum(b.number(5)).rest);
}

}  // namespace
}  // namespace tessera::lower
