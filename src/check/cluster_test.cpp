// What one block of a cluster may know of another: a small ring of multicast copies that threads
// read by themselves.
#include <gtest/gtest.h>

#include "check/check.h"
#include "check/kind.h"
#include "core/builder.h"

namespace tessera::check {
namespace {

using core::BarrierAt;
using core::Builder;
using core::Integers;
using core::SharedAt;

struct Ring {
  std::string release = "mbarrier.arrive_at_release";
  std::string wait = "mbarrier.wait_cluster";
  bool fence = true;    // of the readers, towards the copies that overwrite
  bool writes = false;  // the readers write what they have read
  std::string first = "cluster.arrive_relaxed", last = "cluster.arrive";
};

/// Each of two blocks copies half of 32 numbers to both, N times; a warp of each reads them.
core::Kernel ring(const Ring& r) {
  Builder b("ring", 64, 2);
  b.kernel().grid = b.number(2);
  const Term n = b.parameter("N", 1, 1 << 20);
  const core::TensorId a = b.tensor({"A", DType::float32, {n * 32}, {b.number(1)}});
  const core::SharedId s = b.shared("s", DType::float32, Layout(32, 1));
  const core::BarriersId full = b.barriers("full", 1), empty = b.barriers("empty", 1);
  const Term zero = b.number(0);
  const auto integer = [&](int64_t v) { return Integers{{b.number(v)}}; };
  const auto meet = [&](const std::string& arrive) {
    b.issue(arrive);
    b.issue("cluster.wait");
  };
  b.when(equals(b.at().warp, zero), [&] {
    b.elected([&] {
      b.issue("mbarrier.init", {BarrierAt{full, zero}, integer(1)});
      b.issue("mbarrier.init", {BarrierAt{empty, zero}, integer(2)});
      b.issue("fence.mbarrier_init");
    });
  });
  meet(r.first);
  b.role("copies", 0, 1, [&](Term) {
    b.elected([&] {
      b.loop("k", zero, n, b.number(1), [&](Term k) {
        b.issue(r.wait, {BarrierAt{empty, zero}, Integers{{floor_mod(k + 1, 2)}}});
        b.issue("mbarrier.arrive_expect_tx", {BarrierAt{full, zero}, integer(128)});
        const Term half = b.at().rank * 16;
        b.issue("bulk.load_multicast", {SharedAt{s, {half}}, core::GlobalAt{a, {k * 32 + half}},
                                        integer(64), BarrierAt{full, zero}, integer(3)});
      });
    });
    meet(r.last);
  });
  b.role("reads", 1, 1, [&](Term) {
    const core::RegistersId v = b.registers("v", DType::float32, {32}, Layout(32, 1));
    b.loop("k", zero, n, b.number(1), [&](Term k) {
      b.issue("mbarrier.wait", {BarrierAt{full, zero}, Integers{{floor_mod(k, 2)}}});
      b.issue("load.shared.4", {core::Slice{v, zero}, SharedAt{s, {b.at().lane}}});
      if (r.writes) b.issue("store.shared.4", {SharedAt{s, {b.at().lane}}, core::Slice{v, zero}});
      if (r.fence) b.issue("fence.async.shared::cta");
      b.issue("barrier.sync", {integer(1), integer(32)});
      b.elected([&] {
        for (int rank = 0; rank < 2; ++rank)
          b.issue(r.release, {BarrierAt{empty, zero}, integer(rank)});
      });
    });
    meet(r.last);
  });
  Result<core::Kernel> k = b.finish();
  if (!k) throw std::logic_error(to_text(k.error()));
  return std::move(*k);
}

/// The kind that is refuted first; "": all of synchronization is proved.
std::string refuted(const Ring& r) {
  const Runs runs = run(ring(r));
  if (!runs.violations.empty()) return std::string(runs.violations.front().kind);
  return runs.proved ? "" : runs.why_not;
}

TEST(CheckCluster, AReleaseOfAnotherBlockIsAcquiredByTheClustersScope) {
  EXPECT_EQ(refuted({}), "");
  EXPECT_EQ(refuted({.wait = "mbarrier.wait"}), "race_shared");
  EXPECT_EQ(refuted({.release = "mbarrier.arrive_at"}), "race_shared");
}

TEST(CheckCluster, ReadersFenceForCopiesOfOtherBlocks) {
  EXPECT_EQ(refuted({.writes = true}), "");
  EXPECT_EQ(refuted({.fence = false}), "proxy_fence");
  EXPECT_EQ(refuted({.fence = false, .writes = true}), "proxy_fence");
}

TEST(CheckCluster, ARelaxedMeetingTellsOfFencedBarriersAndNotOfArrivals) {
  EXPECT_EQ(refuted({.first = "cluster.arrive"}), "");
  EXPECT_EQ(refuted({.last = "cluster.arrive_relaxed"}), "exit_order");
}

TEST(CheckCluster, RefutationsNameTheBlock) {
  const Report r = check(ring({.wait = "mbarrier.wait"}));
  const Finding* race = r.find("race_shared");
  ASSERT_EQ(race->verdict, Verdict::refuted);
  const Diagnostic& d = race->diagnostics.front();
  EXPECT_EQ(d.notes[0], "thread: block 1, warp 0 (0 of role `copies`), the elected lane");
  EXPECT_NE(d.expected.find("of block 0"), std::string::npos) << d.expected;
}

}  // namespace
}  // namespace tessera::check
