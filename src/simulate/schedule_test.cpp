// Who goes next by a seed.
#include "simulate/schedule.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <ranges>
#include <set>

namespace tessera::simulate {
namespace {

/// Four warps of one role and eight of another. That all of one come before the other is one chance
/// in 495 where each warp is for itself.
TEST(Schedule, SomeSeedsLetAllWarpsOfARoleGoAhead) {
  std::set<uint64_t> first;
  for (uint64_t n = 0; n < 16; ++n) {
    Seeded seeded(Schedule::of_roles(n));
    std::vector<Actor> actors;
    for (uint64_t w = 0; w < 12; ++w) actors.push_back({.key = w + 1, .role = w < 4 ? 1U : 2U});
    std::vector<uint64_t> roles;
    while (!actors.empty()) {
      const uint32_t next = *seeded.choose(actors);
      roles.push_back(actors[next].role);
      actors.erase(actors.begin() + next);
    }
    const auto changes =
        std::ranges::count_if(std::views::iota(std::size_t{1}, roles.size()),
                              [&](std::size_t i) { return roles[i] != roles[i - 1]; });
    EXPECT_LE(changes, 3) << n;  // one, and where it changes its mind
    first.insert(roles.front());
  }
  EXPECT_EQ(first.size(), 2u) << "each of the two stays behind at times";
}

TEST(Schedule, MostSeedsKnowNoRoles) {
  int by_role = 0;
  for (uint64_t seed = 0; seed < 600; ++seed) by_role += Schedule::seeded(seed).by_role() ? 1 : 0;
  EXPECT_EQ(by_role, 100);
}

}  // namespace
}  // namespace tessera::simulate
