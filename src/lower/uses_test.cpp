#include "lower/uses.h"

#include <gtest/gtest.h>

#include "core/builder.h"
#include "lower/walk.h"

namespace tessera::lower {
namespace {

using core::Builder;
using core::Op;

/// The terms of every number that an instruction has.
std::vector<Wanted> integers_of(const Op& op) {
  std::vector<Wanted> all;
  if (const auto* const i = op.as<core::Issue>())
    for (const core::Argument& a : i->arguments)
      if (const auto* const v = std::get_if<core::Integers>(&a))
        for (const Term t : v->values) all.push_back({t, "x"});
  return all;
}

Uses uses_of(const core::Kernel& k) {
  return {k, integers_of, [](const core::Compute&) { return std::vector<Wanted>(); },
          [](const core::For&, Term) { return false; }};
}

void use(Builder& b, Term t) {
  b.issue("warp.sync", {core::Integers{{t}}});
}

TEST(LowerUses, WhatALoopDoesNotChangeStandsBeforeIt) {
  Builder b("k", 128);
  const Term n = b.parameter("n", 1, 100);
  b.loop("i", b.number(0), n, b.number(1), [&](Term i) {
    use(b, n * 3);
    use(b, n * 3);
    use(b, i * 5);
    use(b, i * 5);
    use(b, n * 7);
  });
  const core::Kernel k = *b.finish();
  const Uses uses = uses_of(k);
  ASSERT_EQ(uses.before(&k.body, 0).size(), 1U);
  EXPECT_EQ(term::to_string(uses.before(&k.body, 0)[0].term), "n * 3");
  const core::Body& inside = k.body[0].as<core::For>()->body;
  ASSERT_EQ(uses.before(&inside, 2).size(), 1U);
  EXPECT_EQ(term::to_string(uses.before(&inside, 2)[0].term), "i * 5");
  EXPECT_TRUE(uses.before(&inside, 4).empty()) << "used once";
}

/// A division is computed before the last wait ahead of its use, also where a lane's branch uses
/// it.
TEST(LowerUses, WhatIsCostlyStandsBeforeTheWaitAheadOfIt) {
  Builder b("k", 128);
  const Term n = b.parameter("n", 1, 100), d = b.parameter("d", 1, 100);
  b.loop("i", b.number(0), n, b.number(1), [&](Term i) {
    use(b, i);
    b.issue("wgmma.wait", {core::Integers{{b.number(0)}}});
    use(b, i);
    b.when(less(b.at().warp, b.number(1)), [&] { use(b, floor_div(i, d)); });
  });
  const core::Kernel k = *b.finish();
  const Uses uses(
      k, integers_of, [](const core::Compute&) { return std::vector<Wanted>(); },
      [](const core::For&, Term) { return false; },
      [](Term t) { return t->op == term::Op::divide; });
  const core::Body& turn = k.body[0].as<core::For>()->body;
  ASSERT_EQ(uses.before(&turn, 1).size(), 1U);
  EXPECT_EQ(term::to_string(uses.before(&turn, 1)[0].term), "i // d");
}

TEST(LowerUses, WhatIsCostlyStaysInABranchOfItsLoopsCounter) {
  Builder b("k", 128);
  const Term n = b.parameter("n", 1, 100), d = b.parameter("d", 1, 100);
  b.loop("i", b.number(0), n, b.number(1), [&](Term i) {
    b.when(equals(floor_mod(i, 2), b.number(0)), [&] {
      use(b, n);
      b.elected([&] { b.issue("setmaxnreg.dec", {core::Integers{{floor_div(i, d)}}}); });
    });
  });
  const core::Kernel k = *b.finish();
  const Uses uses(
      k, integers_of, [](const core::Compute&) { return std::vector<Wanted>(); },
      [](const core::For&, Term) { return false; },
      [](Term t) { return t->op == term::Op::divide; });
  const core::Body& branch = k.body[0].as<core::For>()->body[0].as<core::If>()->body;
  EXPECT_EQ(uses.before(&branch, 0).size(), 1U);
}

/// The counters of two loops may be one symbol; their terms are not one value.
TEST(LowerUses, EveryLoopHasItsOwn) {
  Builder b("k", 128);
  const Term n = b.parameter("n", 1, 100);
  for (int twice = 0; twice < 2; ++twice)
    b.loop("i", b.number(0), n, b.number(1), [&](Term i) {
      use(b, i * 5);
      use(b, i * 5);
    });
  const core::Kernel k = *b.finish();
  const Uses uses = uses_of(k);
  EXPECT_TRUE(uses.before(&k.body, 0).empty());
  for (const core::Op& op : k.body) EXPECT_EQ(uses.before(&op.as<core::For>()->body, 0).size(), 1U);
}

TEST(LowerUses, BranchesKeepTheirOwn) {
  Builder b("k", 128);
  const Term n = b.parameter("n", 1, 100);
  b.when(less(n, b.number(5)), [&] {
    use(b, n * 3);
    use(b, n * 3);
  });
  const core::Kernel k = *b.finish();
  const Uses uses = uses_of(k);
  EXPECT_TRUE(uses.before(&k.body, 0).empty());
  EXPECT_EQ(uses.before(&k.body[0].as<core::If>()->body, 0).size(), 1U);
}

TEST(LowerWalk, LanesMeetAtTheNextInstructionOfAWarp) {
  Builder b("k", 128);
  b.elected([&] { b.issue("bulk.commit"); });
  core::Kernel k = *b.finish();
  EXPECT_TRUE(apart_after(k, k.body, false));
  Builder c("k", 128);
  c.elected([&] { c.issue("bulk.commit"); });
  use(c, c.number(1));
  k = *c.finish();
  EXPECT_FALSE(apart_after(k, k.body, false));
}

}  // namespace
}  // namespace tessera::lower
