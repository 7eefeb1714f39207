// Terms by sizes and by counts of finished turns.
#include "check/sizes.h"

#include <gtest/gtest.h>

#include "core/builder.h"

namespace tessera::check {
namespace {

using core::Builder;

/// Two loops, T turns of K turns each.
struct Loops {
  Builder b{"loops", 32, 2};
  Term t = b.parameter("T", 1, 1 << 20), k = b.parameter("K", 1, 1 << 20);
  Term turn, step;
  core::Kernel kernel = write();
  Sizes sizes{kernel};

  core::Kernel write() {
    b.loop("turn", b.number(0), t, b.number(1), [&](Term outer) {
      turn = outer;
      b.loop("k", b.number(0), k, b.number(1), [&](Term inner) {
        step = inner;
        b.issue("cluster.arrive");
        b.issue("cluster.wait");
      });
    });
    return *b.finish();
  }
  Sizes::Shifted shift(Term term) {
    return sizes.shift(sizes.rewrite(term), {{turn, 0}, {step, 1}}, {});
  }
};

TEST(CheckSizes, AConditionOnParametersIsNoNumberOfTurns) {
  Loops l;
  const Sizes::Shifted some = l.shift(less(l.kernel.pool->constant(1), l.k));
  EXPECT_FALSE(some.term);
  EXPECT_EQ(some.why.substr(some.why.find('`', 1)), "` depends on how many turns are left");
}

TEST(CheckSizes, EachCountHasAPeriodOfItsOwn) {
  Loops l;
  const Sizes::Shifted slot = l.shift(floor_mod(l.turn * l.k + l.step, 3));
  ASSERT_TRUE(slot.term) << slot.why;
  EXPECT_EQ(slot.periods, (std::vector<int64_t>{1, 3}));
  const Sizes::Shifted buffer = l.shift(floor_mod(l.turn, 2));
  ASSERT_TRUE(buffer.term) << buffer.why;
  EXPECT_EQ(buffer.periods, (std::vector<int64_t>{2, 1}));
}

TEST(CheckSizes, ATermThatRepeatsInBothCountsTogetherDoesNotRepeat) {
  Loops l;
  const Sizes::Shifted apart = l.shift(floor_div(l.turn * l.k + l.step - l.turn, 2));
  EXPECT_FALSE(apart.term);
  EXPECT_NE(apart.why.find("does not repeat"), std::string::npos) << apart.why;
}

/// T turns, of K + turn turns each.
struct Varying {
  Builder b{"loops", 32};
  Term t = b.parameter("T", 1, 1 << 20), k = b.parameter("K", 1, 1 << 20);
  Term turn, step, before, doubled;
  core::Kernel kernel = write();
  Sizes sizes{kernel};

  core::Kernel write() {
    b.loop("turn", b.number(0), t, b.number(1), [&](Term outer) {
      turn = outer;
      before = b.carried(outer, "before", k + outer);
      EXPECT_EQ(b.carried(outer, "again", k + outer), before);
      doubled = b.carried(outer, "doubled", (k + outer) * 2);
      b.loop("k", b.number(0), k + outer, b.number(1), [&](Term inner) { step = inner; });
    });
    return *b.finish();
  }
  Sizes::Shifted shift(Term term) {
    return sizes.shift(sizes.rewrite(term), {{turn, 0}, {step, 1}}, {});
  }
};

TEST(CheckSizes, TheSumOfASizeThatVariesIsTheCount) {
  Varying l;
  ASSERT_EQ(l.sizes.all().size(), 2u);
  EXPECT_EQ(l.sizes.all()[1].first, l.k);
  const Sizes::Shifted slot = l.shift(floor_mod(l.before + l.step, 3));
  ASSERT_TRUE(slot.term) << slot.why;
  EXPECT_EQ(slot.periods, (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(slot.term, floor_mod(l.sizes.all()[1].count, 3));
}

TEST(CheckSizes, TurnsThatVaryAreNotMultiplied) {
  Varying l;
  EXPECT_FALSE(l.shift(floor_mod(l.turn * (l.k + l.turn) + l.step, 3)).term);
}

TEST(CheckSizes, ASumOfWhatIsNoSizeIsKnownToBeOne) {
  Varying l;
  const Term doubled = l.doubled + l.step, before = l.before + l.step;
  EXPECT_NE(l.sizes.why_not_exact(doubled, l.sizes.rewrite(doubled)).find("adds up over turns"),
            std::string::npos);
  EXPECT_EQ(l.sizes.why_not_exact(before, l.sizes.rewrite(before)), "");
}

TEST(CheckSizes, BehindBothLoopsTheirProductIsTheCount) {
  Loops l;
  const Term slot = l.sizes.rewrite(floor_mod(l.t * l.k + 1, 3));
  const Sizes::Shifted after = l.sizes.shift(slot, {}, {0}, {{0, 1}});
  ASSERT_TRUE(after.term) << after.why;
  EXPECT_EQ(after.periods, (std::vector<int64_t>{1, 3}));
  // The loop over k may stand somewhere else, or the other one not be done.
  EXPECT_FALSE(l.sizes.shift(slot, {}, {0}, {}).term);
  EXPECT_FALSE(l.sizes.shift(slot, {}, {}, {{0, 1}}).term);
}

TEST(CheckSizes, ABlocksIndexIsItsClustersAndItsRank) {
  Loops l;
  const core::Coordinates& at = l.kernel.at;
  EXPECT_EQ(l.sizes.rewrite(floor_mod(at.block, 2)), at.rank);
  const Term cluster = l.sizes.rewrite(floor_div(at.block, 2));
  EXPECT_FALSE(term::any_node(cluster, [&](Term n) { return n == at.rank || n == at.block; }));
}

TEST(CheckSizes, WhatDependsOnOtherParametersIsNotOfSizes) {
  Loops l;
  EXPECT_TRUE(l.sizes.of_sizes(l.sizes.rewrite(l.turn * l.k + l.kernel.at.rank)));
  EXPECT_FALSE(l.sizes.of_sizes(l.sizes.rewrite(l.kernel.at.blocks + 1)));
}

TEST(CheckSizes, AConditionOfParametersIsNoNumberOfTurns) {
  Loops l;
  const Term condition = term::less(l.k, l.t);
  EXPECT_TRUE(l.sizes.rewrite(condition)->predicate());
  EXPECT_TRUE(l.sizes.of_sizes(l.sizes.rewrite(condition))) << "both are sizes";
}

}  // namespace
}  // namespace tessera::check
