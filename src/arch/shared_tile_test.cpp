#include "arch/shared_tile.h"

#include <gmock/gmock.h>

#include "arch/tma.h"

namespace tessera::arch {
namespace {

constexpr SwizzleMode modes[] = {SwizzleMode::none, SwizzleMode::bytes_32, SwizzleMode::bytes_64,
                                 SwizzleMode::bytes_128};

TEST(SharedTile, EveryElementHasItsOwnBytes) {
  for (SwizzleMode mode : modes)
    for (Major major : {Major::k, Major::mn}) {
      const SharedTile t = shared_tile(Element::bf16, major, mode, 128, 64).value();
      std::set<int64_t> seen;
      for (int64_t mn = 0; mn < t.mn; ++mn)
        for (int64_t k = 0; k < t.k; ++k) seen.insert(t.byte_at(mn, k));
      EXPECT_EQ(seen.size(), 128u * 64u);
      EXPECT_EQ(*seen.rbegin(), t.bytes() - 2);
    }
}

// The alignment of a tile is the period of its pattern: a start that is less aligned would be
// swizzled otherwise.
TEST(SharedTile, IsAlignedToThePeriodOfItsSwizzle) {
  for (SwizzleMode mode : modes) {
    if (mode == SwizzleMode::none) continue;
    EXPECT_EQ(alignment_of(mode), swizzle_of(mode).period());
  }
  EXPECT_EQ(alignment_of(SwizzleMode::bytes_128), 1024);
  EXPECT_EQ(alignment_of(SwizzleMode::none), 128);
}

// 8 rows of one 16-byte column lie in 8 different groups of 4 banks, with the widest swizzle.
TEST(SharedTile, ColumnsOfTheWidestSwizzleAreFreeOfConflicts) {
  const SharedTile t = shared_tile(Element::bf16, Major::k, SwizzleMode::bytes_128, 64, 64).value();
  for (int64_t k = 0; k < 64; k += 8) {
    std::set<int64_t> groups;
    for (int64_t row = 0; row < 8; ++row) groups.insert(t.byte_at(row, k) / 16 % 8);
    EXPECT_EQ(groups.size(), 8u);
  }
}

// What TMA writes by a box of one atom's width is what wgmma reads.
TEST(SharedTile, IsWhatTmaWrites) {
  for (SwizzleMode mode : modes) {
    const int64_t width = width_of(mode) / 2;
    const TensorMap rows{.element = DType::bfloat16,
                         .extents = {4096, 4096},
                         .strides = {8192},
                         .box = {width, 64},
                         .swizzle = mode};
    ASSERT_TRUE(check(rows, 128));
    const SharedTile t = shared_tile(Element::bf16, Major::k, mode, 64, width).value();
    const SharedTile turned = shared_tile(Element::bf16, Major::mn, mode, width, 64).value();
    EXPECT_EQ(rows.shared_alignment(), alignment_of(mode));
    for (int64_t row = 0; row < 64; ++row)
      for (int64_t column = 0; column < width; ++column) {
        const int64_t place = rows.box_layout().at({column, row});
        EXPECT_EQ(place, t.layout().at({row, column}));
        EXPECT_EQ(place, turned.layout().at({column, row}));
      }
  }
}

TEST(SharedTile, RefusesWhatWgmmaDoesNotRead) {
  EXPECT_FALSE(shared_tile(Element::e4m3, Major::mn, SwizzleMode::bytes_128, 128, 64));
  EXPECT_FALSE(shared_tile(Element::bf16, Major::k, SwizzleMode::bytes_128, 64, 32));
  const auto odd = shared_tile(Element::bf16, Major::k, SwizzleMode::bytes_64, 60, 32);
  ASSERT_FALSE(odd);
  EXPECT_EQ(odd.error().code, "TS0451");
  EXPECT_THAT(odd.error().expected, ::testing::HasSubstr("8 x 32"));
}

TEST(SharedTile, DescriptorHasItsFields) {
  const SharedTile t =
      shared_tile(Element::bf16, Major::mn, SwizzleMode::bytes_128, 128, 64).value();
  const uint64_t d = t.descriptor(0x2400, 64, 16);
  EXPECT_EQ(d & 0x3fff, (0x2400u + 1024 + 2 * 2 * 1024) >> 4);
  EXPECT_EQ(d >> 16 & 0x3fff, 1024u >> 4);
  EXPECT_EQ(d >> 32 & 0x3fff, 2048u >> 4);
  EXPECT_EQ(d >> 49 & 7, 0u);
  EXPECT_EQ(d >> 62, 1u);
}

}  // namespace
}  // namespace tessera::arch
