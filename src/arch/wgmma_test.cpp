#include "arch/wgmma.h"

#include <gmock/gmock.h>
#include <set>

namespace tessera::arch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

bool onto(const Layout& l, int64_t size) {
  return l.size() == size && l.cosize() == size && is_injective(l);
}

TEST(Wgmma, EveryElementHasOneRegister) {
  for (const Wgmma& kind : wgmma_kinds())
    for (int64_t n : {int64_t{8}, int64_t{24}, int64_t{256}}) {
      Wgmma w = kind;
      w.n = n;
      ASSERT_TRUE(onto(w.c_layout(), Wgmma::m * n)) << w.form().name << " " << n;
      ASSERT_TRUE(onto(w.a_layout(), Wgmma::m * w.k())) << w.form().name;
      EXPECT_EQ(w.c_layout().mode(0).size(), Wgmma::threads);
      EXPECT_EQ(value_of(w.form().operand("d")->registers, w.choices()), w.c_registers());
      if (w.a_from == Feed::registers) {
        EXPECT_EQ(w.a_layout().mode(1).size(), 4 * w.a_per_register()) << w.form().name;
      }
    }
}

// PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16": the row of d[i] is 16 (warp % 4) +
// lane / 4 (+ 8 for i / 2 odd), its column 8 (i / 4) + 2 (lane % 4) + i % 2.
TEST(Wgmma, AccumulatorsFollowTheIsa) {
  const Wgmma w = wgmma(Element::f16, Element::f16, Element::f32, Feed::shared, 40).value();
  for (int64_t t = 0; t < 128; ++t)
    for (int64_t i = 0; i < 20; ++i) {
      const int64_t lane = t % 32;
      const int64_t row = 16 * (t / 32) + lane / 4 + 8 * (i / 2 % 2);
      const int64_t column = 8 * (i / 4) + 2 * (lane % 4) + i % 2;
      ASSERT_EQ(w.c_layout().at({t, i}), row + 64 * column) << t << " " << i;
    }
}

TEST(Wgmma, WidthsOfIntegersAreCoarser) {
  EXPECT_EQ(wgmma_widths(Element::bf16).size(), 32u);
  EXPECT_EQ(wgmma_widths(Element::s8).size(), 18u);
  EXPECT_TRUE(wgmma(Element::u8, Element::s8, Element::s32, Feed::shared, 24));
  auto none = wgmma(Element::s8, Element::s8, Element::s32, Feed::shared, 40);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().expected, HasSubstr("multiple of 16"));
  EXPECT_FALSE(wgmma(Element::bf16, Element::bf16, Element::f32, Feed::shared, 264));
  EXPECT_FALSE(wgmma(Element::bf16, Element::bf16, Element::f32, Feed::shared, 0));
}

TEST(Wgmma, TypesThatDoNotGoTogether) {
  auto mixed = wgmma(Element::bf16, Element::f16, Element::f32, Feed::shared, 64);
  ASSERT_FALSE(mixed);
  EXPECT_THAT(mixed.error().expected, HasSubstr("wgmma.f32.bf16.bf16.ss"));
  EXPECT_FALSE(wgmma(Element::bf16, Element::bf16, Element::f16, Feed::shared, 64));
  EXPECT_FALSE(wgmma(Element::tf32, Element::tf32, Element::f32, Feed::shared, 64, true));
  EXPECT_TRUE(wgmma(Element::e4m3, Element::e5m2, Element::f16, Feed::registers, 64));
}

TEST(Wgmma, Renders) {
  const Wgmma w = wgmma(Element::tf32, Element::tf32, Element::f32, Feed::registers, 8).value();
  const auto r = render(w.form(), w.choices());
  ASSERT_TRUE(r);
  EXPECT_THAT(r->text, HasSubstr("wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%0, %1, %2, "
                                 "%3}, {%4, %5, %6, %7}, %8, accumulate, %10, %11;"));
  EXPECT_EQ(r->slots.front().constraint, "+f");
  EXPECT_EQ(r->slots[8].constraint, "l");
  EXPECT_EQ(r->slots[10].constraint, "n");
}

// 16-bit operands alone may be transposed, A only where it is in shared memory.
TEST(Wgmma, TransposesSixteenBitsAlone) {
  for (const Wgmma& w : wgmma_kinds()) {
    const bool wide = bytes_of(w.a) == 2;
    EXPECT_EQ(w.form().operand("transpose_b") != nullptr, wide) << w.form().name;
    EXPECT_EQ(w.form().operand("transpose_a") != nullptr, wide && w.a_from == Feed::shared);
    EXPECT_EQ(w.form().operand("scale_a") != nullptr, w.c != Element::s32);
  }
}

TEST(Wgmma, LocksItsRegistersUntilItsGroupIsComplete) {
  for (const Wgmma& w : wgmma_kinds()) {
    const Effects& e = w.form().effects;
    EXPECT_EQ(e.locked_until("d"), Completion::wgmma_group);
    EXPECT_EQ(e.locked_until("a"),
              w.a_from == Feed::registers ? Completion::wgmma_group : Completion::at_once);
    EXPECT_TRUE(e.asynchronous());
  }
  EXPECT_FALSE(find_form("wgmma.wait")->effects.asynchronous());
}

}  // namespace
}  // namespace tessera::arch
