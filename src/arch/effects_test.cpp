#include "arch/effects.h"

#include <gtest/gtest.h>

#include "arch/instruction.h"

namespace tessera::arch {
namespace {

TEST(Effects, PrintAsPhrases) {
  EXPECT_EQ(to_string(find_form("bulk.store")->effects),
            "issued by one elected thread; reads $bytes bytes at $from (shared, async proxy) until "
            "bulk_group_read; writes $bytes bytes at $to (global, async proxy) until bulk_group; "
            "needs async_proxy of $from; needs async_proxy of $to");
  EXPECT_EQ(to_string(find_form("mbarrier.arrive_expect_tx")->effects),
            "issued by each thread; signals expectation($bytes) at $barrier; signals arrival(1) at "
            "$barrier, release block; needs barrier_init of $barrier");
  EXPECT_EQ(to_string(find_form("fence.async.shared::cta")->effects),
            "issued by each thread; fences async_proxy of shared");
  EXPECT_EQ(to_string(find_form("ldmatrix")->effects),
            "issued by a whole warp; reads 16 bytes at $from of each of the first 8 * <matrices> "
            "lanes (shared, generic proxy)");
}

TEST(Effects, EveryWordHasItsOwnName) {
  const auto distinct = [](auto first, auto last) {
    std::set<std::string_view> names;
    for (int i = static_cast<int>(first); i <= static_cast<int>(last); ++i)
      EXPECT_TRUE(names.insert(name_of(static_cast<decltype(first)>(i))).second) << i;
  };
  distinct(Issuer::elected, Issuer::warpgroup);
  distinct(Space::registers, Space::global);
  distinct(Proxy::none, Proxy::tensormap);
  distinct(Action::read, Action::update);
  distinct(Completion::at_once, Completion::wgmma_group);
  distinct(EventKind::arrival, EventKind::prerequisites);
  distinct(When::at_once, When::with_prior_copies);
  distinct(Ordering::relaxed, Ordering::both);
  distinct(Scope::thread, Scope::system);
  distinct(FenceKind::async_proxy, FenceKind::memory);
  EXPECT_EQ(name_of(EventKind::prerequisites), "prerequisites");
  EXPECT_EQ(name_of(FenceKind::memory), "memory");
  EXPECT_EQ(name_of(Completion::wgmma_group), "wgmma_group");
}

TEST(Effects, AmountsPrintAndEvaluate) {
  EXPECT_EQ(to_string(Amount::modifier("n", 1, 2)), "<n> / 2");
  EXPECT_EQ(value_of(Amount::modifier("n", 1, 2), {{"n", "64"}}), 32);
  EXPECT_EQ(value_of(Amount::operand("bytes"), {}), std::nullopt);
  EXPECT_EQ(to_string(Amount::box("map")), "box($map)");
  EXPECT_EQ(value_of(Amount::number(-1), {}), -1);
}

}  // namespace
}  // namespace tessera::arch
