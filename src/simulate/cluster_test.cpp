// Two blocks of a cluster: multicast, remote arrivals, and ends of blocks that others reach into.
#include <gtest/gtest.h>
#include <set>

#include "core/testing/mutate_cluster.h"
#include "simulate/testing/kit.h"
#include "simulate/testing/product.h"

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

struct Multicast {
  bool meets_first = true;  // the cluster, after the barriers are made
  bool meets_last = true;   // before the blocks end
  bool expects = true;      // each block its bytes
  int64_t blocks = 3;       // the mask
};

/// Block 0 loads 128 bytes into both blocks; each waits for its own and writes them out, then tells
/// block 0.
core::Kernel multicast(const Multicast& m) {
  Builder b("multicast", 32, 2);
  b.kernel().grid = b.number(2);
  const auto a = testing::vector(b, "A", 32, Access::input);
  const auto c = testing::vector(b, "C", 64, Access::output);
  const auto s = b.shared("s", DType::float32, Layout(32, 1));
  const auto full = b.barriers("full", 1);
  const auto read = b.barriers("read", 1);
  const auto v = registers(b, "v");
  const Term zero = b.number(0);
  const auto meet = [&] {
    b.issue("cluster.arrive");
    b.issue("cluster.wait");
  };
  b.elected([&] {
    b.issue("mbarrier.init", {BarrierAt{full, zero}, integer(b, 1)});
    b.issue("mbarrier.init", {BarrierAt{read, zero}, integer(b, 2)});
    b.issue("fence.mbarrier_init");
    if (m.expects) b.issue("mbarrier.arrive_expect_tx", {BarrierAt{full, zero}, integer(b, 128)});
  });
  if (m.meets_first) meet();
  b.when(equals(b.at().rank, zero), [&] {
    b.elected([&] {
      b.issue("bulk.load_multicast", {SharedAt{s, {zero}}, GlobalAt{a, {zero}}, integer(b, 128),
                                      BarrierAt{full, zero}, integer(b, m.blocks)});
    });
  });
  b.issue("mbarrier.wait", {BarrierAt{full, zero}, integer(b, 0)});
  b.issue("load.shared.4", {first(b, v), SharedAt{s, {b.at().lane}}});
  b.issue("store.global.4", {GlobalAt{c, {b.at().rank * 32 + b.at().lane}}, first(b, v)});
  b.elected([&] { b.issue("mbarrier.arrive_at", {BarrierAt{read, zero}, integer(b, 0)}); });
  b.when(equals(b.at().rank, zero),
         [&] { b.issue("mbarrier.wait_cluster", {BarrierAt{read, zero}, integer(b, 0)}); });
  if (m.meets_last) meet();
  return finished(b);
}

Launch counting() {
  Launch l;
  for (int i = 0; i < 32; ++i) l.inputs["A"].push_back(i);
  return l;
}

TEST(SimulateCluster, MulticastReachesBothBlocks) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const Outcome o = run(multicast({}), counting(), seed);
    EXPECT_EQ(findings(o), "") << seed;
    for (int i = 0; i < 64; ++i) EXPECT_EQ(o.outputs.at("C")[i], i % 32);
  }
}

TEST(SimulateCluster, BlocksAreThereBeforeOthersReachIn) {
  const Outcome o = run(multicast({.meets_first = false}), counting(), 1);
  ASSERT_FALSE(o.findings.empty());
}

TEST(SimulateCluster, BlocksStayWhileOthersReachIn) {
  // Block 0 waits for the arrivals at its barrier, so that it may end; nothing else reaches into
  // it.
  EXPECT_EQ(verdict(multicast({.meets_last = false}), counting()), "");
}

TEST(SimulateCluster, AMaskThatLeavesABlockOut) {
  EXPECT_EQ(verdict(multicast({.blocks = 1}), counting()), stuck.id);
}

/// Block 1 arrives at block 0's barrier, and block 0 does not wait for that.
TEST(SimulateCluster, ABlockEndsBeforeAnArrival) {
  const auto kernel = [](bool waits, std::string_view last = "") {
    Builder b("late", 32, 2);
    b.kernel().grid = b.number(2);
    const auto bar = b.barriers("bar", 1);
    const Term zero = b.number(0);
    b.elected([&] {
      b.issue("mbarrier.init", {BarrierAt{bar, zero}, integer(b, 1)});
      b.issue("fence.mbarrier_init");
    });
    b.issue("cluster.arrive");
    b.issue("cluster.wait");
    b.when(
        equals(b.at().rank, b.number(1)),
        [&] {
          b.elected([&] {
            b.issue("mbarrier.arrive_at_release", {BarrierAt{bar, zero}, integer(b, 0)});
          });
        },
        [&] {
          if (waits) b.issue("mbarrier.wait_cluster", {BarrierAt{bar, zero}, integer(b, 0)});
        });
    if (!last.empty()) {
      b.issue(last);
      b.issue("cluster.wait");
    }
    return finished(b);
  };
  EXPECT_EQ(verdict(kernel(true)), "");
  EXPECT_EQ(verdict(kernel(false)), "TS0848");
  // Who meets the thread that arrived knows of it, unless it comes without releasing what it did.
  EXPECT_EQ(verdict(kernel(false, "cluster.arrive")), "");
  EXPECT_EQ(verdict(kernel(false, "cluster.arrive_relaxed")), "TS0848");
}

/// `fence.mbarrier_init` releases the initializations before it, and no other access.
TEST(SimulateCluster, BarriersAreKnownAfterARelaxedMeetingOfTheCluster) {
  const auto kernel = [](bool fence, bool stores) {
    Builder b("relaxed", 64, 2);
    b.kernel().grid = b.number(2);
    const auto s = b.shared("s", DType::float32, Layout(32, 1));
    const auto bar = b.barriers("bar", 1);
    const auto v = registers(b, "v");
    const Term zero = b.number(0);
    b.when(equals(b.at().warp, zero), [&] {
      testing::set(b, v, b.at().lane);
      if (stores) b.issue("store.shared.4", {SharedAt{s, {b.at().lane}}, first(b, v)});
      b.elected([&] {
        b.issue("mbarrier.init", {BarrierAt{bar, zero}, integer(b, 1)});
        if (fence) b.issue("fence.mbarrier_init");
      });
    });
    b.issue("cluster.arrive_relaxed");
    b.issue("cluster.wait");
    b.when(equals(b.at().warp, b.number(1)), [&] {
      b.elected([&] { b.issue("mbarrier.arrive", {BarrierAt{bar, zero}}); });
      b.issue("mbarrier.wait", {BarrierAt{bar, zero}, integer(b, 0)});
      if (stores) b.issue("load.shared.4", {first(b, v), SharedAt{s, {b.at().lane}}});
    });
    return finished(b);
  };
  EXPECT_EQ(verdict(kernel(true, false)), "");
  EXPECT_EQ(verdict(kernel(false, false)), race.id);
  EXPECT_EQ(verdict(kernel(true, true)), race.id);
}

core::testing::GemmShape pair(bool beside) {
  return {.bm = 64, .bn = 128, .bk = 16, .stages = 2, .cluster = 2, .beside = beside};
}
/// Two turns of one cluster, with more turns of k than stages.
const testing::Sizes pair_sizes{.m = 256, .n = 256, .k = 80, .multiprocessors = 2};

TEST(SimulateCluster, PairedProductsAreRight) {
  const Launch launch = testing::launch(pair_sizes);
  for (bool beside : {false, true}) {
    const Result<core::Kernel> k = core::testing::gemm(pair(beside));
    ASSERT_TRUE(k);
    for (uint64_t seed = 0; seed < 3; ++seed) {
      const Result<Outcome> o = simulate(*k, launch, Schedule::seeded(seed));
      ASSERT_TRUE(o && o->findings.empty()) << (o ? findings(*o) : to_text(o.error()));
      EXPECT_EQ(testing::wrong_element(launch, pair_sizes, o->outputs.at("C")), "");
    }
  }
}

TEST(SimulateCluster, MistakesBetweenBlocksAreFound) {
  // The other role's warps wait at the end, and the block stays while they do.
  const std::set<std::pair<std::string, int>> equivalent = {{"drop_cluster_wait", 1},
                                                            {"drop_cluster_wait", 2}};
  const Result<core::Kernel> k = core::testing::gemm(pair(false));
  ASSERT_TRUE(k);
  const Launch launch = testing::launch(pair_sizes);
  int wrong = 0;
  for (const core::testing::Mutant& m : core::testing::cluster_mutants(*k)) {
    const Result<Outcome> o = simulate(m.kernel, launch, Schedule::seeded(1));
    ASSERT_TRUE(o) << m.name << "\n" << to_text(o.error());
    const bool right = equivalent.contains({m.name, m.site});
    EXPECT_EQ(o->findings.empty(), right) << m.name << " " << m.site << ": " << m.edit;
    wrong += right ? 0 : 1;
  }
  EXPECT_GT(wrong, 35);
}

TEST(SimulateCluster, WaitingWithoutHavingCome) {
  Builder b("alone", 32, 2);
  b.kernel().grid = b.number(2);
  b.issue("cluster.wait");
  EXPECT_EQ(verdict(finished(b)), bad_barrier.id);
}

}  // namespace
}  // namespace tessera::simulate
