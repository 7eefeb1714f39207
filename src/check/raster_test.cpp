// Roles that take tiles by turns: together each tile once.
#include "check/raster.h"

#include <gtest/gtest.h>

#include "check/check.h"
#include "check/kind.h"
#include "check/place.h"
#include "core/testing/gemm.h"
#include "core/testing/mutate.h"

namespace tessera::check {
namespace {

/// What is said of roles that take these turns, the last of which repeat from `steady` on.
Covering by_turns(const core::Kernel& k, const std::vector<std::vector<bool>>& taken,
                  int64_t steady = 0) {
  const Means means = **means_of(k);
  Raster r{{}, {}, {}, 128, 128};
  for (const Place& p : places(k)) {
    if (p.op->as<core::Issue>() == nullptr || p.issue().form->name != "tma.load") continue;
    const Term corner = argument<core::Integers>(p.issue(), "at")->values[1];
    (r.row ? r.column : r.row) = corner;
    r.turn = p.loops.front();
  }
  std::vector<Raster> roles;
  for (const std::vector<bool>& t : taken) {
    roles.push_back(r);
    roles.back().taken = t;
    roles.back().steady = steady;
  }
  return covering(k, roles, means.outputs.front().to);
}

TEST(CheckRaster, RolesTakeEachTurnOnce) {
  using V = Covering::Verdict;
  const Result<core::Kernel> k = core::testing::gemm({.bn = 128});
  ASSERT_TRUE(k);
  EXPECT_EQ(by_turns(*k, {{true}}).verdict, V::proved);
  EXPECT_EQ(by_turns(*k, {{true, false}, {false, true}}).verdict, V::proved);
  EXPECT_EQ(by_turns(*k, {{true, true, false}, {false, false, true}}, 1).verdict, V::proved);
  for (const auto& bad :
       std::vector<std::vector<std::vector<bool>>>{{{true, false}},
                                                   {{true, false}, {true, false}},
                                                   {{true, true}, {false, true}},
                                                   {{true, false, false}, {false, true, false}}}) {
    const Covering c = by_turns(*k, bad);
    EXPECT_EQ(c.verdict, V::refuted) << c.found;
  }
}

TEST(CheckRaster, RolesMeanTheSameTileByATurn) {
  const Result<core::Kernel> k = core::testing::gemm({.bn = 128});
  ASSERT_TRUE(k);
  const Covering late = by_turns(*k, {{true, true, true, true, true, true, true, true, false}}, 8);
  EXPECT_EQ(late.verdict, Covering::Verdict::unknown);
  EXPECT_EQ(late.found, "0 roles make the tile of turn 8");
}

/// `M // 64` tiles in the place of `(M + 63) // 64`: whole tiles are there, the last part is not.
TEST(CheckRaster, TurnsThatLeaveOutTheLastPartAreRefuted) {
  const Result<core::Kernel> k = core::testing::gemm({.bm = 64, .bn = 64, .bk = 16, .stages = 2});
  ASSERT_TRUE(k);
  int loops = 0;
  for (const core::testing::Mutant& m : core::testing::storage_mutants(*k)) {
    if (m.name != "floor_for_ceil") continue;
    ++loops;
    const Report r = check(m.kernel, {}, **means_of(m.kernel));
    EXPECT_EQ(r.verdict(), Verdict::refuted) << m.edit << "\n" << to_text(r);
  }
  EXPECT_GE(loops, 1);
}

}  // namespace
}  // namespace tessera::check
