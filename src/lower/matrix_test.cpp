// Descriptors against arch/shared_tile.h, and storages that no descriptor describes.
#include "lower/matrix.h"

#include <gtest/gtest.h>

#include "arch/shared_tile.h"

#include "core/builder.h"
#include "lower/codes.h"

namespace tessera::lower {
namespace {

using arch::Element;
using arch::Major;
using arch::SwizzleMode;
using core::Builder;

core::SharedAt at_origin(Builder& b, const arch::SharedTile& tile) {
  const core::SharedId s =
      b.shared("a", arch::storage_of(tile.element), tile.layout(), tile.swizzle);
  return {s, {b.number(0), b.number(0)}};
}

TEST(LowerMatrix, BitsAreThoseOfTheTile) {
  for (const Major major : {Major::k, Major::mn})
    for (const SwizzleMode swizzle :
         {SwizzleMode::none, SwizzleMode::bytes_32, SwizzleMode::bytes_64, SwizzleMode::bytes_128})
      for (const Element e : {Element::bf16, Element::e4m3}) {
        if (major == Major::mn && e == Element::e4m3) continue;
        const Result<arch::SharedTile> tile = arch::shared_tile(e, major, swizzle, 128, 128);
        ASSERT_TRUE(tile);
        Builder b("k", 128);
        const Result<MatrixBits> bits =
            matrix_bits(b.kernel(), at_origin(b, *tile), {e, major, 64, 32 / arch::bytes_of(e)});
        ASSERT_TRUE(bits) << to_text(bits.error());
        const uint64_t expected = tile->descriptor(0, 0, 0);
        EXPECT_EQ(bits->low, static_cast<uint32_t>(expected)) << name_of(swizzle) << name_of(major);
        EXPECT_EQ(bits->high, static_cast<uint32_t>(expected >> 32)) << name_of(swizzle);
      }
}

TEST(LowerMatrix, OthersAreRefused) {
  const auto code_of = [](const Layout& layout, SwizzleMode swizzle, int64_t row, Major major) {
    Builder b("k", 128);
    const core::SharedId s = b.shared("a", DType::bfloat16, layout, swizzle);
    const Result<MatrixBits> bits =
        matrix_bits(b.kernel(), {s, {b.number(row), b.number(0)}}, {Element::bf16, major, 64, 16});
    return bits ? std::string() : bits.error().code;
  };
  const Layout rows(IntTuple::flat({128, 64}), IntTuple::flat({64, 1}));
  EXPECT_EQ(code_of(rows, SwizzleMode::bytes_128, 8, Major::k), "");
  // Rows of 128 bytes in a swizzle of 64, rows that are padded, the other direction, a row in the
  // middle of an atom, fewer rows than wgmma reads.
  EXPECT_EQ(code_of(rows, SwizzleMode::bytes_64, 0, Major::k), "TS0852");
  EXPECT_EQ(code_of(Layout(IntTuple::flat({128, 64}), IntTuple::flat({72, 1})),
                    SwizzleMode::bytes_128, 0, Major::k),
            "TS0852");
  EXPECT_EQ(code_of(rows, SwizzleMode::bytes_128, 0, Major::mn), "TS0852");
  EXPECT_EQ(code_of(rows, SwizzleMode::bytes_128, 4, Major::k), "TS0852");
  EXPECT_EQ(code_of(Layout(IntTuple::flat({32, 64}), IntTuple::flat({64, 1})),
                    SwizzleMode::bytes_128, 0, Major::k),
            "TS0852");
}

}  // namespace
}  // namespace tessera::lower
