// The operand layouts against the PTX ISA's own formulas, stated independently (groupID = lane / 4,
// threadID_in_group = lane % 4), and against what every such layout must satisfy.
#include <gtest/gtest.h>
#include <set>

#include "arch/arch.h"

namespace tessera::arch {
namespace {

struct Place {
  int64_t row, column;
  friend auto operator<=>(const Place&, const Place&) = default;
};

Place at(const Layout& l, int64_t rows, int64_t lane, int64_t i) {
  const int64_t index = l.at({lane, i});
  return {index % rows, index / rows};
}

TEST(Mma, Tf32FragmentsFollowTheIsa) {
  const Mma& mma = *find_mma("m16n8k8.tf32");
  for (int64_t lane = 0; lane < 32; ++lane) {
    const int64_t group = lane / 4, in_group = lane % 4;
    for (int64_t i = 0; i < 4; ++i)
      EXPECT_EQ(at(mma.a, 16, lane, i),
                (Place{i % 2 == 0 ? group : group + 8, i < 2 ? in_group : in_group + 4}));
    for (int64_t i = 0; i < 2; ++i)
      EXPECT_EQ(at(mma.b, 8, lane, i), (Place{group, i == 0 ? in_group : in_group + 4}));
  }
}

TEST(Mma, SixteenBitFragmentsFollowTheIsa) {
  const Mma& mma = *find_mma("m16n8k16.bf16");
  for (int64_t lane = 0; lane < 32; ++lane) {
    const int64_t group = lane / 4, in_group = lane % 4;
    for (int64_t i = 0; i < 8; ++i) {
      const int64_t row = (i < 2) || (i >= 4 && i < 6) ? group : group + 8;
      const int64_t column = in_group * 2 + (i & 1) + (i >= 4 ? 8 : 0);
      EXPECT_EQ(at(mma.a, 16, lane, i), (Place{row, column})) << i;
    }
    for (int64_t i = 0; i < 4; ++i)
      EXPECT_EQ(at(mma.b, 8, lane, i), (Place{group, in_group * 2 + (i & 1) + (i >= 2 ? 8 : 0)}));
  }
}

TEST(Mma, AccumulatorsFollowTheIsa) {
  for (const Mma& mma : mma_sync())
    for (int64_t lane = 0; lane < 32; ++lane)
      for (int64_t i = 0; i < 4; ++i)
        EXPECT_EQ(at(mma.c, 16, lane, i),
                  (Place{i < 2 ? lane / 4 : lane / 4 + 8, lane % 4 * 2 + (i & 1)}));
}

TEST(Mma, EveryElementHasOneSlot) {
  for (const Mma& mma : mma_sync()) {
    EXPECT_TRUE(is_injective(mma.a) && is_injective(mma.b) && is_injective(mma.c)) << mma.name;
    EXPECT_EQ(mma.a.size(), mma.m * mma.k);
    EXPECT_EQ(mma.a.cosize(), mma.m * mma.k);
    EXPECT_EQ(mma.b.size(), mma.n * mma.k);
    EXPECT_EQ(mma.b.cosize(), mma.n * mma.k);
    EXPECT_EQ(mma.c.size(), mma.m * mma.n);
    EXPECT_EQ(mma.a.mode(0).size(), mma.threads);
  }
}

TEST(Mma, ArchitecturesNameTheirOwn) {
  const Arch* hopper = *find("sm_90a");
  EXPECT_EQ(hopper->product(Precision::tf32)->name, "m16n8k8.tf32");
  EXPECT_EQ(hopper->product(Precision::fp16)->name, "m16n8k16.fp16");
  EXPECT_EQ(hopper->product(Precision::fp32), nullptr);
  EXPECT_EQ((*find("host"))->product(Precision::tf32), nullptr);
  EXPECT_EQ(find_mma("m8n8k4.f64"), nullptr);
}

}  // namespace
}  // namespace tessera::arch
