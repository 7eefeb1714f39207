// Lanes that part and meet, named barriers, accesses within their bounds, outputs written once.
#include <gtest/gtest.h>

#include "simulate/testing/kit.h"

namespace tessera::simulate {
namespace {

using core::Access;
using core::Builder;
using core::GlobalAt;
using core::SharedAt;
using core::Term;
using testing::findings;
using testing::finished;
using testing::first;
using testing::integer;
using testing::registers;
using testing::run;
using testing::set;
using testing::verdict;

TEST(SimulateLanes, GoApartAndMeet) {
  Builder b("apart", 32);
  const auto c = testing::vector(b, "C", 32, Access::output);
  const auto v = registers(b, "v");
  const Term lane = b.at().lane;
  b.when(less(lane, b.number(10)), [&] { set(b, v, lane); }, [&] { set(b, v, lane * -1); });
  b.loop("i", b.number(0), lane, b.number(8), [&](Term i) { set(b, v, lane * 100 + i); });
  b.issue("warp.sync", {integer(b, -1)});
  b.issue("store.global.4", {GlobalAt{c, {lane}}, first(b, v)});
  const Outcome o = run(finished(b));
  EXPECT_EQ(findings(o), "");
  const std::vector<double>& out = o.outputs.at("C");
  EXPECT_EQ(out[0], 0);
  EXPECT_EQ(out[8], 800);
  EXPECT_EQ(out[9], 908);
  EXPECT_EQ(out[31], 3124);
}

TEST(SimulateLanes, AWholeWarpIsNeeded) {
  Builder b("partial", 32);
  b.when(less(b.at().lane, b.number(16)),
         [&] { b.issue("barrier.sync", {integer(b, 0), integer(b, 32)}); });
  EXPECT_EQ(verdict(finished(b)), stuck.id);
}

TEST(SimulateLanes, NamedBarriers) {
  const auto kernel = [](int64_t first_count, int64_t second_count, bool second_comes) {
    Builder b("named", 64);
    const auto c = testing::vector(b, "C", 32, Access::output);
    const auto s = b.shared("s", DType::float32, Layout(32, 1));
    const auto v = registers(b, "v");
    const Term lane = b.at().lane;
    b.when(
        equals(b.at().warp, b.number(0)),
        [&] {
          set(b, v, lane + 1);
          b.issue("store.shared.4", {SharedAt{s, {lane}}, first(b, v)});
          b.issue("barrier.arrive", {integer(b, 3), integer(b, first_count)});
        },
        [&] {
          if (second_comes) b.issue("barrier.sync", {integer(b, 3), integer(b, second_count)});
          b.issue("load.shared.4", {first(b, v), SharedAt{s, {lane}}});
          b.issue("store.global.4", {GlobalAt{c, {lane}}, first(b, v)});
        });
    return finished(b);
  };
  EXPECT_EQ(verdict(kernel(64, 64, true)), "");
  EXPECT_EQ(run(kernel(64, 64, true)).outputs.at("C")[7], 8);
  EXPECT_EQ(verdict(kernel(64, 32, true)).substr(0, 6), std::string(bad_barrier.id));
  EXPECT_EQ(verdict(kernel(96, 96, true)), stuck.id);
  const Outcome o = run(kernel(64, 64, false));
  ASSERT_FALSE(o.findings.empty());
}

TEST(SimulateLanes, AccessesHaveBounds) {
  const auto kernel = [](const std::string& form, int64_t stride, int64_t offset, bool bounded) {
    Builder b("bounds", 32);
    const auto c = testing::vector(b, "C", 64, Access::output);
    const auto v = registers(b, "v", 4);
    const Term lane = b.at().lane;
    set(b, v, lane, 4);
    const Term at = lane * stride + offset;
    std::vector<core::Argument> arguments = {GlobalAt{c, {at}}, first(b, v)};
    if (bounded) arguments.emplace_back(core::Integers{{less(at, b.number(64))}});
    b.issue(form, arguments);
    return finished(b);
  };
  EXPECT_EQ(verdict(kernel("store.global.8", 2, 0, false)), "");
  EXPECT_EQ(verdict(kernel("store.global.4", 1, 33, false)), "TS0843");
  EXPECT_EQ(verdict(kernel("store.global.4.bounded", 2, 0, true)), "TS0847");  // half of C
  EXPECT_EQ(verdict(kernel("store.global.8", 2, 1, false)), "TS0843");         // misaligned
  EXPECT_EQ(verdict(kernel("store.global.16", 2, 0, false)), "TS0843");
  const Outcome o = run(kernel("store.global.4", 0, 0, false));  // all lanes, one element
  ASSERT_GE(o.findings.size(), 2u);
  EXPECT_EQ(o.findings[0].code, "TS0847");
  EXPECT_EQ(o.findings[1].code, "TS0840");
}

TEST(SimulateLanes, NothingTouchesAnMbarrier) {
  const auto kernel = [](bool over) {
    Builder b("over", 32);
    const auto bar = b.barriers("bar", 1);
    const auto s = b.shared("s", DType::float32, Layout(32, 1));
    if (over) b.kernel().shared[0].at = 0;
    const auto v = registers(b, "v");
    set(b, v, b.at().lane);
    b.elected([&] {
      b.issue("mbarrier.init", {core::BarrierAt{bar, b.number(0)}, integer(b, 1)});
      b.issue("fence.mbarrier_init");
    });
    b.issue("warp.sync", {integer(b, -1)});
    b.issue("store.shared.4", {SharedAt{s, {b.at().lane}}, first(b, v)});
    return finished(b);
  };
  EXPECT_EQ(verdict(kernel(false)), "");
  EXPECT_EQ(verdict(kernel(true)), bad_barrier.id);
}

TEST(SimulateLanes, OutputsAreWrittenOnce) {
  Builder b("twice", 32);
  const auto c = testing::vector(b, "C", 32, Access::output);
  const auto a = testing::vector(b, "A", 32, Access::input);
  const auto v = registers(b, "v");
  const Term lane = b.at().lane;
  b.issue("load.global.4", {first(b, v), GlobalAt{a, {lane}}});
  b.issue("store.global.4", {GlobalAt{c, {lane}}, first(b, v)});
  Launch l;
  l.inputs["A"].assign(32, 2.5);
  EXPECT_EQ(verdict(finished(b), l), "");

  Builder twice("twice", 32);
  const auto out = testing::vector(twice, "C", 32, Access::output);
  const auto w = registers(twice, "v");
  set(twice, w, twice.at().lane);
  for (int i = 0; i < 2; ++i)
    twice.issue("store.global.4", {GlobalAt{out, {twice.at().lane}}, first(twice, w)});
  EXPECT_EQ(verdict(finished(twice)), bad_output.id);

  // A kernel that does nothing at all has no place to show.
  Builder never("never", 32);
  testing::vector(never, "C", 32, Access::output);
  EXPECT_EQ(verdict(finished(never)), bad_output.id);
}

TEST(SimulateLanes, RegistersHaveNoValueAtFirst) {
  Builder b("fresh", 32);
  const auto c = testing::vector(b, "C", 32, Access::output);
  const auto v = registers(b, "v");
  b.issue("store.global.4", {GlobalAt{c, {b.at().lane}}, first(b, v)});
  EXPECT_EQ(verdict(finished(b)), uninitialized.id);
}

/// Sums across a warp by butterflies, then along a thread's elements.
TEST(SimulateLanes, ValuesMoveBetweenLanes) {
  Builder b("sum", 32);
  const auto c = testing::vector(b, "C", 32, Access::output, DType::int32);
  const auto v = registers(b, "v", 2, DType::int32);
  const auto other = registers(b, "other", 1, DType::int32);
  const Term e = b.take(b.kernel().pool->coordinate("e", 2));
  set(b, v, b.at().lane + e * 10, 2, e);
  auto sum = std::make_shared<pointwise::Dag>();
  sum->results = {sum->add_call("add", {sum->add_operand(0), sum->add_operand(1)})};
  const auto at = [&](core::RegistersId r, int64_t n) {
    return core::Run{r, b.number(n), Layout(1, 0)};
  };
  b.compute({sum, {at(v, 0), at(v, 1)}, {at(v, 0)}, 1, {}});
  for (int64_t by = 16; by > 0; by /= 2) {
    b.issue("shuffle",
            {first(b, other), first(b, v), integer(b, by), integer(b, 31), integer(b, -1)},
            {{"mode", "bfly"}});
    b.compute({sum, {at(v, 0), at(other, 0)}, {at(v, 0)}, 1, {}});
  }
  b.issue("store.global.4", {GlobalAt{c, {b.at().lane}}, first(b, v)});
  const Outcome o = run(finished(b));
  EXPECT_EQ(findings(o), "");
  for (double x : o.outputs.at("C")) EXPECT_EQ(x, 2 * 496 + 320);
}

TEST(SimulateLanes, RegistersOfAPoolThatNobodyFills) {
  const auto kernel = [](int64_t keeps, int64_t wants) {
    Builder b("pool", 256);
    b.role("gives", 0, 4, [&](Term) { b.issue("setmaxnreg.dec", {integer(b, keeps)}); });
    b.role("takes", 4, 4, [&](Term) { b.issue("setmaxnreg.inc", {integer(b, wants)}); });
    core::Kernel k = finished(b);
    k.min_blocks = 2;
    return k;
  };
  EXPECT_EQ(verdict(kernel(40, 216)), "");
  EXPECT_EQ(verdict(kernel(40, 224)), stuck.id);
}

}  // namespace
}  // namespace tessera::simulate
