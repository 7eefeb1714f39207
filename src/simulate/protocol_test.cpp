// A ring between two warps, by mbarriers and ordinary loads and stores: small enough for every
// schedule.
#include <gtest/gtest.h>
#include <set>

#include "simulate/testing/kit.h"

namespace tessera::simulate {
namespace {

using core::Builder;
using core::Kernel;
using core::Term;

struct Ring {
  int stages = 2;
  int64_t trips = 3;
  bool waits_full = true, waits_empty = true;
  int64_t empty_count = 1;
  int64_t producer_parity = 1;
  bool flips = true;
  int release_behind = 0;
};

using testing::integer;

Kernel ring(const Ring& r) {
  Builder b("ring", 64);
  const Term one = b.number(1);
  const core::TensorId c = b.tensor({"C",
                                     DType::float32,
                                     {b.number(r.trips), b.number(32)},
                                     {b.number(32), one},
                                     core::Access::output});
  const core::SharedId s = b.shared(
      "s", DType::float32, Layout(IntTuple::flat({r.stages, 32}), IntTuple::flat({32, 1})));
  const core::BarriersId full = b.barriers("full", r.stages);
  const core::BarriersId empty = b.barriers("empty", r.stages);
  b.when(equals(b.at().warp, b.number(0)), [&] {
    b.elected([&] {
      b.unrolled("i", r.stages, [&](Term i) {
        b.issue("mbarrier.init", {core::BarrierAt{full, i}, integer(b, 1)});
        b.issue("mbarrier.init", {core::BarrierAt{empty, i}, integer(b, r.empty_count)});
      });
      b.issue("fence.mbarrier_init");
    });
  });
  b.issue("barrier.sync", {integer(b, 0), integer(b, 64)});
  const auto parity = [&](Term t, int64_t first) {
    return core::Integers{
        {r.flips ? floor_mod(floor_div(t, r.stages) + first, 2) : b.number(first)}};
  };
  b.role("producer", 0, 1, [&](Term) {
    const auto v = testing::registers(b, "v");
    b.loop("t", b.number(0), b.number(r.trips), one, [&](Term t) {
      if (r.waits_empty)
        b.issue("mbarrier.wait",
                {core::BarrierAt{empty, floor_mod(t, r.stages)}, parity(t, r.producer_parity)});
      testing::set(b, v, t * 100 + b.at().lane);
      b.issue("store.shared.4", {core::SharedAt{s, {floor_mod(t, r.stages), b.at().lane}},
                                 core::Slice{v, b.number(0)}});
      b.elected(
          [&] { b.issue("mbarrier.arrive", {core::BarrierAt{full, floor_mod(t, r.stages)}}); });
    });
  });
  b.role("consumer", 1, 1, [&](Term) {
    const auto w = testing::registers(b, "w");
    b.loop("t", b.number(0), b.number(r.trips), one, [&](Term t) {
      if (r.waits_full)
        b.issue("mbarrier.wait", {core::BarrierAt{full, floor_mod(t, r.stages)}, parity(t, 0)});
      const auto release = [&] {
        b.elected(
            [&] { b.issue("mbarrier.arrive", {core::BarrierAt{empty, floor_mod(t, r.stages)}}); });
      };
      if (r.release_behind < 0) release();
      b.issue("load.shared.4", {core::Slice{w, b.number(0)},
                                core::SharedAt{s, {floor_mod(t, r.stages), b.at().lane}}});
      if (r.release_behind >= 0) release();
      b.issue("store.global.4", {core::GlobalAt{c, {t, b.at().lane}}, core::Slice{w, b.number(0)}});
    });
  });
  return testing::finished(b);
}

Exploration explored(const Ring& r) {
  const Result<Simulator> s = Simulator::make(ring(r), {});
  if (!s) throw std::logic_error(to_text(s.error()));
  return s->explore(20000);
}

/// The first finding's code of every schedule; empty: clean in all.
std::string verdict(const Ring& r) {
  const Exploration e = explored(r);
  if (e.last.findings.empty()) return e.complete ? "" : "not explored";
  return e.last.findings.front().code;
}

TEST(SimulateProtocol, TheRingIsRightInEverySchedule) {
  for (int stages : {1, 2})
    for (int64_t trips : {0, 1, stages, stages + 1}) {
      if (trips == 0) continue;  // an output without elements is no tensor
      const Exploration e = explored({.stages = stages, .trips = trips});
      EXPECT_TRUE(e.complete) << stages << " " << trips << " " << e.runs;
      for (const Diagnostic& d : e.last.findings) ADD_FAILURE() << to_text(d);
      for (int64_t i = 0; i < trips * 32; ++i)
        EXPECT_EQ(e.last.outputs.at("C")[i], i / 32 * 100 + i % 32);
    }
}

TEST(SimulateProtocol, EveryScheduleMeansSeveralRuns) {
  const Exploration e = explored({.stages = 2, .trips = 3});
  EXPECT_TRUE(e.complete);
  EXPECT_GT(e.runs, 4);
}

TEST(SimulateProtocol, BugsOfTheRing) {
  EXPECT_EQ(verdict({.waits_full = false}), "TS0842");
  EXPECT_EQ(verdict({.waits_empty = false}), "TS0840");
  EXPECT_EQ(verdict({.producer_parity = 0}), "TS0844");
  EXPECT_EQ(verdict({.empty_count = 2}), "TS0844");
  EXPECT_EQ(verdict({.release_behind = -1}), "TS0840");
  EXPECT_NE(verdict({.stages = 1, .trips = 4, .flips = false}), "");
}

/// What a seeded schedule finds, the exploration of all finds; and it finds what no seed may have.
TEST(SimulateProtocol, AllSchedulesIncludeTheSeededOnes) {
  int wrong = 0, right = 0;
  for (int variant = 0; variant < 128; ++variant) {
    const auto bit = [&](int i) { return (variant >> i & 1) != 0; };
    const Ring r{.stages = bit(0) ? 1 : 2,
                 .trips = bit(1) ? 1 : 4,
                 .waits_full = !bit(2),
                 .waits_empty = !bit(3),
                 .producer_parity = bit(4) ? 0 : 1,
                 .flips = !bit(5),
                 .release_behind = bit(6) ? -1 : 0};
    const Exploration all = explored(r);
    ASSERT_TRUE(all.complete || !all.last.findings.empty());
    const Result<Simulator> s = Simulator::make(ring(r), {});
    ASSERT_TRUE(s);
    bool found = false;
    for (uint64_t seed = 0; seed < 9; ++seed)
      found = found || !s->run(Schedule::seeded(seed)).findings.empty();
    EXPECT_TRUE(!found || !all.last.findings.empty()) << "variant " << variant;
    (all.last.findings.empty() ? right : wrong) += 1;
  }
  EXPECT_GT(wrong, 20);
  EXPECT_GT(right, 5);
}

/// A lane that is slow at a wait finds the barrier two phases on.
TEST(SimulateProtocol, AWaitThatIsLappedByAParity) {
  Builder b("lapped", 64);
  const core::BarriersId bar = b.barriers("bar", 1);
  b.when(equals(b.at().warp, b.number(0)), [&] {
    b.elected([&] {
      b.issue("mbarrier.init", {core::BarrierAt{bar, b.number(0)}, integer(b, 1)});
      b.issue("fence.mbarrier_init");
    });
  });
  b.issue("barrier.sync", {integer(b, 0), integer(b, 64)});
  b.when(
      equals(b.at().warp, b.number(0)),
      [&] {
        b.elected([&] {
          b.loop("t", b.number(0), b.number(3), b.number(1),
                 [&](Term) { b.issue("mbarrier.arrive", {core::BarrierAt{bar, b.number(0)}}); });
        });
      },
      [&] { b.issue("mbarrier.wait", {core::BarrierAt{bar, b.number(0)}, integer(b, 0)}); });
  const Result<Kernel> k = b.finish();
  ASSERT_TRUE(k);
  const Result<Simulator> s = Simulator::make(*k, {});
  ASSERT_TRUE(s) << to_text(s.error());
  const Exploration e = s->explore(1000);
  ASSERT_FALSE(e.last.findings.empty());
  EXPECT_EQ(e.last.findings.front().code, "TS0845") << to_text(e.last.findings.front());
}

}  // namespace
}  // namespace tessera::simulate
