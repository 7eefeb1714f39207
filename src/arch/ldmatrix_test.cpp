#include "arch/ldmatrix.h"

#include <gtest/gtest.h>

namespace tessera::arch {
namespace {

// PTX ISA: lane l has columns 2 (l % 4) and the next of row l / 4 of each matrix; transposed, those
// of the transposed matrix.
TEST(Ldmatrix, FollowsTheIsa) {
  for (const int matrices : {1, 2, 4}) {
    const MatrixMove plain{matrices}, turned{matrices, true};
    EXPECT_TRUE(is_injective(plain.elements()) && is_injective(turned.elements()));
    EXPECT_EQ(plain.elements().cosize(), 64 * matrices);
    EXPECT_EQ(turned.elements().cosize(), 64 * matrices);
    for (int64_t lane = 0; lane < 32; ++lane)
      for (int64_t e = 0; e < 2 * matrices; ++e) {
        const int64_t row = lane / 4, column = 2 * (lane % 4) + e % 2, matrix = e / 2;
        EXPECT_EQ(plain.elements().at({lane, e}), column + 8 * row + 64 * matrix);
        EXPECT_EQ(turned.elements().at({lane, e}), row + 8 * column + 64 * matrix);
      }
    for (int64_t row = 0; row < 8; ++row)
      EXPECT_EQ(plain.lane_of_row().at({row, matrices - 1}), row + 8 * (matrices - 1));
  }
}

TEST(Ldmatrix, TouchesTheRowsWhoseAddressesItUses) {
  for (const bool stores : {false, true}) {
    const MatrixMove move{2, false, stores};
    const Access& a = move.form().effects.accesses.at(0);
    EXPECT_EQ(a.place, Place::rows);
    EXPECT_EQ(a.action, stores ? Action::write : Action::read);
    EXPECT_EQ(value_of(a.lanes, move.choices()), 16);
    EXPECT_EQ(value_of(a.bytes, move.choices()), 16);
    EXPECT_EQ(render(move.form(), move.choices())->slots.size(), 3u);
  }
}

}  // namespace
}  // namespace tessera::arch
