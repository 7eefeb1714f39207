// The product of core/testing on seeded schedules: right, and without findings.
#include "simulate/simulate.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/thorough.h"

#include "simulate/testing/product.h"

namespace tessera::simulate {
namespace {

using testing::Sizes;

struct Case {
  core::testing::GemmShape shape;
  Sizes sizes;
};

void run(const Case& c, int64_t schedules) {
  const Result<core::Kernel> kernel = core::testing::gemm(c.shape);
  ASSERT_TRUE(kernel) << to_text(kernel.error());
  const Launch launch = testing::launch(c.sizes);
  const Result<Simulator> simulator = Simulator::make(*kernel, launch);
  ASSERT_TRUE(simulator) << to_text(simulator.error());
  for (int64_t seed = 0; seed < schedules; ++seed) {
    const Outcome o = simulator->run(Schedule::seeded(seed));
    for (const Diagnostic& d : o.findings) ADD_FAILURE() << "seed " << seed << "\n" << to_text(d);
    EXPECT_EQ(testing::wrong_element(launch, c.sizes, o.outputs.at("C")), "");
    if (::testing::Test::HasFailure()) return;
  }
}

/// Trips of the loop over k: 1, S, S + 1; edges; several tiles a block.
TEST(Simulate, ProductIsRightAtEveryTripCount) {
  for (int stages : {2, 3})
    for (int64_t trips : {1, stages, stages + 1})
      run({{.bm = 64, .bn = 64, .bk = 16, .stages = stages}, {.k = 16 * trips}}, 6);
}

TEST(Simulate, ProductIsRightAtOddExtents) {
  run({{.bm = 64, .bn = 64, .bk = 16, .stages = 2}, {.m = 72, .n = 40, .k = 24}}, 6);
  run({{.bm = 64, .bn = 128, .bk = 64, .stages = 2}, {.m = 8, .n = 136, .k = 72}}, 3);
}

TEST(Simulate, ProductIsRightWithSeveralTilesABlock) {
  run({{.bm = 64, .bn = 64, .bk = 16, .stages = 2},
       {.m = 128, .n = 136, .k = 32, .multiprocessors = 2}},
      6);
  run({{.bm = 64, .bn = 64, .bk = 32, .stages = 3},
       {.m = 128, .n = 64, .k = 40, .multiprocessors = 1}},
      6);
}

TEST(Simulate, ProductIsRightWithTwoConsumers) {
  run({{.bm = 128, .bn = 64, .bk = 16, .stages = 2}, {.m = 120, .n = 64, .k = 48}}, 6);
}

/// A thousand schedules, where TESSERA_TEST_ALL asks for them.
TEST(Simulate, ProductIsRightOnManySchedules) {
  const bool all = thorough();
  run({{.bm = 64, .bn = 64, .bk = 16, .stages = 2},
       {.m = 72, .n = 72, .k = 40, .multiprocessors = 2}},
      all ? 1000 : 10);
}

TEST(Simulate, AScheduleIsReplayed) {
  const Result<core::Kernel> kernel =
      core::testing::gemm({.bm = 64, .bn = 64, .bk = 16, .stages = 2});
  ASSERT_TRUE(kernel);
  const Result<Simulator> simulator = Simulator::make(*kernel, testing::launch({.k = 48}));
  ASSERT_TRUE(simulator);
  const Outcome first = simulator->run(Schedule::seeded(5));
  ASSERT_GT(first.schedule.choices.size(), 20u);
  Schedule replayed = first.schedule;
  replayed.seed = 99;
  const Outcome again = simulator->run(replayed);
  EXPECT_EQ(again.schedule.choices, first.schedule.choices);
  EXPECT_EQ(again.steps, first.steps);
  EXPECT_NE(simulator->run(Schedule::seeded(6)).schedule.choices, first.schedule.choices);
}

TEST(Simulate, RefusesLaunchesThatDoNotFit) {
  const Result<core::Kernel> kernel =
      core::testing::gemm({.bm = 64, .bn = 64, .bk = 16, .stages = 2});
  ASSERT_TRUE(kernel);
  const auto refused = [&](const Launch& l) {
    const Result<Outcome> o = simulate(*kernel, l);
    ASSERT_FALSE(o);
    EXPECT_EQ(o.error().code, "TS0849") << to_text(o.error());
  };
  Launch l = testing::launch({});
  l.parameters.erase("K");
  refused(l);
  l = testing::launch({});
  l.parameters["K"] = 12;  // no multiple of 8
  refused(l);
  l = testing::launch({});
  l.inputs["A"].pop_back();
  refused(l);
}

}  // namespace
}  // namespace tessera::simulate
