// Asynchronous copies and matrices beyond what the product uses.
#include <gtest/gtest.h>

#include "simulate/testing/kit.h"

namespace tessera::simulate {
namespace {

using core::Access;
using core::BarrierAt;
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
using testing::verdict;

Launch counting(int64_t count) {
  Launch l;
  for (int64_t i = 0; i < count; ++i) l.inputs["A"].push_back(static_cast<double>(i));
  return l;
}

/// Two groups of cp.async; the first is used after a wait that leaves `pending` groups.
core::Kernel groups(int64_t pending) {
  Builder b("groups", 32);
  const auto a = testing::vector(b, "A", 64, Access::input);
  const auto c = testing::vector(b, "C", 32, Access::output);
  const auto s = b.shared("s", DType::float32, Layout(64, 1));
  const auto v = registers(b, "v");
  const Term lane = b.at().lane;
  for (int64_t i = 0; i < 2; ++i) {
    b.issue("cp_async.4", {SharedAt{s, {lane + 32 * i}}, GlobalAt{a, {lane + 32 * i}}});
    b.issue("cp_async.commit");
  }
  b.issue("cp_async.wait", {integer(b, pending)});
  b.issue("load.shared.4", {first(b, v), SharedAt{s, {lane}}});
  b.issue("cp_async.wait", {integer(b, 0)});
  b.issue("store.global.4", {GlobalAt{c, {lane}}, first(b, v)});
  return finished(b);
}

TEST(SimulateCopies, GroupsOfCpAsync) {
  EXPECT_EQ(verdict(groups(1), counting(64)), "");
  EXPECT_EQ(run(groups(1), counting(64)).outputs.at("C")[9], 9);
  const Outcome o = run(groups(2), counting(64));
  ASSERT_FALSE(o.findings.empty());
  EXPECT_TRUE(o.findings.front().code == race.id || o.findings.front().code == uninitialized.id)
      << findings(o);
}

/// All lanes copy, and the mbarrier counts the copies of each.
TEST(SimulateCopies, CopiesThatArriveAtABarrier) {
  const auto kernel = [](int64_t count) {
    Builder b("arrive", 64);
    const auto a = testing::vector(b, "A", 32, Access::input);
    const auto c = testing::vector(b, "C", 32, Access::output);
    const auto s = b.shared("s", DType::float32, Layout(32, 1));
    const auto bar = b.barriers("bar", 1);
    const auto v = registers(b, "v");
    const Term lane = b.at().lane;
    b.when(equals(b.at().warp, b.number(0)), [&] {
      b.elected([&] {
        b.issue("mbarrier.init", {BarrierAt{bar, b.number(0)}, integer(b, count)});
        b.issue("fence.mbarrier_init");
      });
    });
    b.issue("barrier.sync", {integer(b, 0), integer(b, 64)});
    b.when(
        equals(b.at().warp, b.number(0)),
        [&] {
          b.issue("cp_async.4", {SharedAt{s, {lane}}, GlobalAt{a, {lane}}});
          b.issue("cp_async.arrive", {BarrierAt{bar, b.number(0)}});
        },
        [&] {
          b.issue("mbarrier.wait", {BarrierAt{bar, b.number(0)}, integer(b, 0)});
          b.issue("load.shared.4", {first(b, v), SharedAt{s, {lane}}});
          b.issue("store.global.4", {GlobalAt{c, {lane}}, first(b, v)});
        });
    return finished(b);
  };
  EXPECT_EQ(verdict(kernel(32), counting(32)), "");
  EXPECT_EQ(run(kernel(32), counting(32)).outputs.at("C")[31], 31);
  EXPECT_EQ(verdict(kernel(33), counting(32)), stuck.id);
}

/// Each lane makes and uses a barrier of its own; then the same bytes are barriers again.
TEST(SimulateCopies, BarriersOfEachLaneMadeTwice) {
  const auto kernel = [](bool ends) {
    Builder b("again", 32);
    const auto bar = b.barriers("bar", 32);
    const BarrierAt mine{bar, b.at().lane};
    for (int64_t round = 0; round < 2; ++round) {
      b.issue("mbarrier.init", {mine, integer(b, 1 + round)});
      b.issue("fence.mbarrier_init");
      for (int64_t i = 0; i <= round; ++i) b.issue("mbarrier.arrive", {mine});
      b.issue("mbarrier.wait", {mine, integer(b, 0)});
      if (ends) b.issue("mbarrier.inval", {mine});
    }
    return finished(b);
  };
  EXPECT_EQ(verdict(kernel(true)), "");
  EXPECT_EQ(verdict(kernel(false)), bad_barrier.id);
}

/// Bytes in by a bulk load, out by a bulk store.
core::Kernel bulk(bool waits, bool waits_at_end, int64_t bytes) {
  Builder b("bulk", 32);
  const auto a = testing::vector(b, "A", 64, Access::input);
  const auto c = testing::vector(b, "C", 64, Access::output);
  const auto s = b.shared("s", DType::float32, Layout(64, 1));
  const auto bar = b.barriers("bar", 1);
  const Term zero = b.number(0);
  b.elected([&] {
    b.issue("mbarrier.init", {BarrierAt{bar, zero}, integer(b, 1)});
    b.issue("fence.mbarrier_init");
    b.issue("mbarrier.arrive_expect_tx", {BarrierAt{bar, zero}, integer(b, bytes)});
    b.issue("bulk.load",
            {SharedAt{s, {zero}}, GlobalAt{a, {zero}}, integer(b, 256), BarrierAt{bar, zero}});
    if (waits) b.issue("mbarrier.wait", {BarrierAt{bar, zero}, integer(b, 0)});
    b.issue("bulk.store", {GlobalAt{c, {zero}}, SharedAt{s, {zero}}, integer(b, 256)});
    b.issue("bulk.commit");
    if (waits_at_end) b.issue("bulk.wait_read", {integer(b, 0)});
  });
  return finished(b);
}

TEST(SimulateCopies, BulkCopies) {
  EXPECT_EQ(verdict(bulk(true, true, 256), counting(64)), "");
  EXPECT_EQ(run(bulk(true, true, 256), counting(64)).outputs.at("C")[63], 63);
  EXPECT_EQ(verdict(bulk(true, false, 256), counting(64)), early_exit.id);
  EXPECT_EQ(verdict(bulk(true, true, 512), counting(64)), stuck.id);
  EXPECT_FALSE(run(bulk(false, true, 256), counting(64)).findings.empty());
}

/// A 16 x 16 matrix through ldmatrix, transposed or not, and stmatrix.
TEST(SimulateCopies, MatricesOfAWarp) {
  const auto kernel = [](bool transposed) {
    Builder b("matrices", 32);
    const auto a = testing::vector(b, "A", 256, Access::input, DType::float16);
    const auto c = testing::vector(b, "C", 256, Access::output, DType::float16);
    const Layout square(IntTuple::flat({16, 16}), IntTuple::flat({16, 1}));
    const auto s = b.shared("s", DType::float16, square);
    const auto t = b.shared("t", DType::float16, square);
    const auto v = registers(b, "v", 8, DType::float16);
    const Term lane = b.at().lane;
    const Term row = floor_div(lane, 2);
    const Term column = floor_mod(lane, 2) * 8;
    b.issue("load.global.16", {first(b, v), GlobalAt{a, {lane * 8}}});
    b.issue("store.shared.16", {SharedAt{s, {row, column}}, first(b, v)});
    b.issue("warp.sync", {integer(b, -1)});
    const SharedAt rows{s, {floor_mod(lane, 16), floor_div(lane, 16) * 8}};
    const SharedAt back{t, rows.at};
    b.issue(transposed ? "ldmatrix.trans" : "ldmatrix", {first(b, v), rows}, {{"matrices", "4"}});
    b.issue("stmatrix", {back, first(b, v)}, {{"matrices", "4"}});
    b.issue("warp.sync", {integer(b, -1)});
    b.issue("load.shared.16", {first(b, v), SharedAt{t, {row, column}}});
    b.issue("store.global.16", {GlobalAt{c, {lane * 8}}, first(b, v)});
    return finished(b);
  };
  const Outcome plain = run(kernel(false), counting(256));
  EXPECT_EQ(findings(plain), "");
  const Outcome turned = run(kernel(true), counting(256));
  EXPECT_EQ(findings(turned), "");
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j) {
      EXPECT_EQ(plain.outputs.at("C")[16 * i + j], 16 * i + j);
      // Each 8 x 8 matrix is transposed where it lies.
      const int from = 16 * (i / 8 * 8 + j % 8) + j / 8 * 8 + i % 8;
      EXPECT_EQ(turned.outputs.at("C")[16 * i + j], from);
    }
}

/// Several blocks add to one workspace, which one of them has set.
TEST(SimulateCopies, UpdatesAsOneAreNoRace) {
  const auto kernel = [](bool atomic) {
    Builder b("updates", 64);
    const auto s = b.shared("s", DType::float32, Layout(32, 1));
    const auto v = registers(b, "v");
    const Term lane = b.at().lane;
    testing::set(b, v, lane);
    b.when(equals(b.at().warp, b.number(0)),
           [&] { b.issue("store.shared.4", {SharedAt{s, {lane}}, first(b, v)}); });
    b.issue("barrier.sync", {integer(b, 0), integer(b, 64)});
    if (atomic)
      b.issue("reduce.shared.f32", {SharedAt{s, {b.number(3)}}, first(b, v)}, {{"op", "add"}});
    else
      b.issue("store.shared.4", {SharedAt{s, {lane}}, first(b, v)});
    return finished(b);
  };
  EXPECT_EQ(verdict(kernel(true)), "");
  EXPECT_EQ(verdict(kernel(false)), race.id);
}

}  // namespace
}  // namespace tessera::simulate
