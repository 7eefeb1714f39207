#include "simulate/shadow.h"

#include <gtest/gtest.h>

namespace tessera::simulate {
namespace {

using Kind = Conflict::Kind;

Knowledge knowing(uint32_t component, uint32_t clock, bool fenced = false) {
  Knowledge k;
  k.seen.set(component, clock);
  if (fenced) k.shared_fenced.set(component, clock);
  return k;
}

TEST(SimulateShadow, OrderedAccessesDoNotConflict) {
  Shadow s(64, 16, false, false);
  EXPECT_FALSE(s.write(0, 32, {.component = 1, .clock = 5}, {}));
  EXPECT_FALSE(s.read(16, 16, {.component = 2, .clock = 1}, knowing(1, 5)));
  EXPECT_TRUE(s.written(31));
  EXPECT_FALSE(s.written(32));
}

TEST(SimulateShadow, AnUnseenWriteIsARace) {
  Shadow s(64, 16, false, false);
  EXPECT_FALSE(s.write(0, 32, {.component = 1, .clock = 5, .event = 7}, {}));
  const auto read = s.read(16, 16, {.component = 2, .clock = 1}, knowing(1, 4));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->kind, Kind::race);
  EXPECT_EQ(read->earlier.event, 7u);
  EXPECT_EQ(read->byte, 16);
  EXPECT_TRUE(read->earlier_writes);
}

TEST(SimulateShadow, AllReadsBeforeAWriteCount) {
  Shadow s(16, 16, false, true);
  EXPECT_FALSE(s.read(0, 16, {.component = 1, .clock = 2}, {}));
  EXPECT_FALSE(s.read(0, 16, {.component = 2, .clock = 2}, {}));
  Knowledge one = knowing(2, 2);
  const auto write = s.write(0, 16, {.component = 3, .clock = 1}, one);
  ASSERT_TRUE(write);
  EXPECT_EQ(write->earlier.component, 1u);
  EXPECT_FALSE(write->earlier_writes);
}

TEST(SimulateShadow, ALaterReadStandsForThoseItFollows) {
  Shadow s(16, 16, false, true);
  EXPECT_FALSE(s.read(0, 16, {.component = 1, .clock = 2}, {}));
  EXPECT_FALSE(s.read(0, 16, {.component = 2, .clock = 2}, knowing(1, 2)));
  EXPECT_FALSE(s.write(0, 16, {.component = 3, .clock = 1}, knowing(2, 2)));
}

TEST(SimulateShadow, TheAsyncProxyNeedsAFence) {
  Shadow s(16, 16, false, false);
  EXPECT_FALSE(s.write(0, 16, {.component = 1, .clock = 2}, {}));
  const Mark async{.component = 2, .clock = 1, .async = true};
  const auto read = s.read(0, 16, async, knowing(1, 2));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->kind, Kind::proxy);
  EXPECT_FALSE(s.read(0, 16, async, knowing(1, 2, true)));
}

TEST(SimulateShadow, UpdatesAsOneDoNotRace) {
  Shadow s(16, 4, false, true);
  EXPECT_FALSE(s.write(4, 4, {.component = 1, .clock = 2, .atomic = true}, {}));
  EXPECT_FALSE(s.write(4, 4, {.component = 2, .clock = 2, .atomic = true}, {}));
  EXPECT_TRUE(s.read(4, 4, {.component = 3, .clock = 2}, {}));
}

TEST(SimulateShadow, ReadsOfNothing) {
  Shadow s(16, 4, false, false);
  EXPECT_EQ(s.read(0, 4, {.component = 1, .clock = 1}, {})->kind, Kind::uninitialized);
}

}  // namespace
}  // namespace tessera::simulate
