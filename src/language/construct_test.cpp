// Constructs of the language, one by one: what each becomes in the core.
#include <gtest/gtest.h>

#include "language/language.h"
#include "language/testing/dump.h"
#include "term/evaluate.h"

namespace tessera::language {
namespace {

/// The dump of kernel `k` of this text, or what is told of it.
std::string dumped(const std::string& text) {
  const Result<core::Kernel> k =
      elaborate({"k.py", "from tessera.language import *\n" + text}, "k");
  return k ? testing::dump(*k) : to_text(k.error());
}

/// The dump from the first op on: `body` stands in a kernel of 128 threads.
std::string body(const std::string& lines, const std::string& parameters = "") {
  const std::string all = dumped("@kernel(threads=128)\ndef k(" + parameters + "):\n" + lines);
  const std::size_t grid = all.find("\n");
  std::string out;
  for (std::size_t at = grid + 1; at < all.size() && at != 0; at = all.find('\n', at) + 1) {
    const std::string line = all.substr(at, all.find('\n', at) + 1 - at);
    const bool storage = line.rfind("parameter ", 0) == 0 || line.rfind("barriers ", 0) == 0 ||
                         line.rfind("shared ", 0) == 0 || line.rfind("tensor ", 0) == 0;
    if (!storage) out += line;
  }
  return all.rfind("error", 0) == 0 ? all : out;
}

TEST(LanguageConstructs, PositionsHaveParts) {
  const std::string k = body(
      "    for m in tiles(M, 8, persistent=False):\n"
      "        for c in parts(8, 4):\n"
      "            store(load(X[m[c], :]), X[m[c], :])\n",
      "M: index(), X: Tensor[f32, \"M\", 32, out]");
  EXPECT_NE(
      k.find("load.global.4.bounded(registers0[#1], tensor0[block * 8 + #0 * 4 + warp, lane], "
             "[select(block * 8 + #0 * 4 + warp < M, 1, 0)])"),
      std::string::npos)
      << k;
}

TEST(LanguageConstructs, AParameterOfNoTypeIsNoneOfTheKernel) {
  const auto of = [](int mask) {
    return dumped(
        "@kernel(threads=128)\ndef k(N: index(), S: index(at_least=0),\n"
        "    M: Tensor[b1, \"N\", 32, strides(\"S\", 1)] if MASK == 1 else None,\n"
        "    Y: Tensor[f32, \"N\", 32, out], MASK: const = " +
        std::to_string(mask) +
        "):\n"
        "    for n in tiles(N, 4, persistent=False):\n"
        "        y = load(Y[n, :])\n"
        "        if MASK == 1:\n"
        "            y[:] = where(load(M[n, :], like=y), y, 0.0)\n"
        "        store(y, Y[n, :])\n");
  };
  EXPECT_NE(of(1).find("load.global.1."), std::string::npos) << of(1);
  EXPECT_EQ(of(0).find("load.global.1."), std::string::npos) << of(0);
  EXPECT_NE(of(0).find("store.global"), std::string::npos) << of(0);
}

TEST(LanguageConstructs, ARingOfOtherTurnsEachTimeGoesOnFromTheirSum) {
  const std::string k = dumped(
      "@kernel(threads=128)\ndef k(N: index()):\n"
      "    full = barrier(2)\n"
      "    work = tiles(N, 1, N, 1)\n"
      "    with one_thread():\n"
      "        for m, n in work:\n"
      "            steps = ring(m.index + 1, 4, 2)\n"
      "            for s in steps:\n"
      "                full[s].wait()\n"
      "            full[steps.last].arrive()\n");
  EXPECT_NE(k.find("carried #2 += ("), std::string::npos) << k;
  EXPECT_NE(k.find("mbarrier.wait(barriers0[(#2 + #3) % 2], [(#2 + #3) // 2 % 2])"),
            std::string::npos)
      << k;
}

TEST(LanguageConstructs, ARingInTwoLoopsHasAsManyTurnsInEach) {
  const std::string k = dumped(
      "@kernel(threads=128)\ndef k(N: index()):\n"
      "    full = barrier(2)\n"
      "    with one_thread():\n"
      "        for i in range(N):\n"
      "            for j in range(N):\n"
      "                for s in ring(j + 1, 4, 2):\n"
      "                    full[s].wait()\n");
  EXPECT_NE(k.find("the ring has another number of turns each time"), std::string::npos) << k;
}

TEST(LanguageConstructs, ArrivalsAreCountedBySlot) {
  const std::string k = dumped(
      "@kernel\ndef k(N: index()):\n"
      "    each = barrier(2)\n"
      "    all = barrier(2)\n"
      "    with role(\"worker\", warpgroups=2):\n"
      "        for i in range(N):\n"
      "            each[warpgroup].arrive()\n"
      "            all[i % 2].arrive()\n");
  EXPECT_NE(k.find("mbarrier.init(barriers0[#0], [4])"), std::string::npos) << k;
  EXPECT_NE(k.find("mbarrier.init(barriers1[#0], [8])"), std::string::npos) << k;
}

TEST(LanguageConstructs, WhatIsKnownIsComputed) {
  EXPECT_EQ(body("    if 7 // 2 == 3 and not (5 % 3 > 2) and 1 < 2 <= 2:\n        sync()\n"
                 "    else:\n        wgmma.fence()\n"),
            "barrier.sync([0], [128])\n");
  EXPECT_EQ(body("    for i in static_range(2):\n        issue(\"wgmma.wait\", i + 1)\n"),
            "wgmma.wait([1])\nwgmma.wait([2])\n");
  EXPECT_EQ(body("    for i in [3, 5]:\n        wgmma.wait(min(i, 4) if i > 3 else 0)\n"),
            "wgmma.wait([0])\nwgmma.wait([4])\n");
}

TEST(LanguageConstructs, WhatTheLaunchChoosesBecomesTheMachines) {
  EXPECT_EQ(body("    for i in range(2, N):\n        if i % 2 == 0 or i > 7:\n            sync()\n"
                 "        else:\n            wgmma.fence()\n",
                 "N: index(at_least=3)"),
            "for #0 in 0, N - 2, 1\n  if (2 + #0) % 2 == 0 or 7 < 2 + #0\n"
            "    barrier.sync([0], [128])\n  else\n    wgmma.fence()\n");
}

TEST(LanguageConstructs, LoopsWithinEachOtherHaveCountersOfTheirOwn) {
  EXPECT_EQ(body("    for i in unrolled(2):\n        for j in unrolled(2):\n            sync()\n"
                 "    for i in range(3):\n        sync()\n"),
            "unrolled #0 in 0, 2, 1\n  unrolled #1 in 0, 2, 1\n    barrier.sync([0], [128])\n"
            "for #2 in 0, 3, 1\n  barrier.sync([0], [128])\n");
}

TEST(LanguageConstructs, SingleThreadsAreChosenOfRoleWarpgroupAndWarp) {
  EXPECT_EQ(dumped("@kernel\ndef k():\n    with role(\"a\", warpgroups=2):\n"
                   "        with one_thread():\n            bulk.commit()\n"
                   "        with one_thread(\"warpgroup\"):\n            bulk.commit()\n"
                   "        with one_thread(\"warp\"):\n            bulk.commit()\n"),
            "threads 256 cluster 1 blocks 1 grid 1\nrole 8 from 0, a_warp\n"
            "  if a_warp == 0\n    elected\n      bulk.commit()\n"
            "  if a_warp % 4 == 0\n    elected\n      bulk.commit()\n"
            "  elected\n    bulk.commit()\n");
}

TEST(LanguageConstructs, NamedBarriersAreNumberedApart) {
  const std::string text = dumped(
      "@kernel\ndef k():\n    with role(\"a\", warpgroups=2):\n        sync(\"warpgroup\")\n"
      "        sync()\n    with role(\"b\", warps=2):\n        sync()\n");
  EXPECT_EQ(text,
            "threads 320 cluster 1 blocks 1 grid 1\n"
            "role 8 from 0, a_warp\n  barrier.sync([a_warp // 4 + 1], [128])\n"
            "  barrier.sync([3], [256])\nrole 2 from 8, b_warp\n  barrier.sync([4], [64])\n");
}

TEST(LanguageConstructs, ArrivalsAreCounted) {
  const std::string text = dumped(
      "@kernel\ndef k(K: index()):\n    a = barrier(2)\n    with role(\"x\", warpgroups=1):\n"
      "        for i in ring(K, 64, 2):\n            a[i].arrive()\n"
      "    with role(\"y\", warps=3), one_thread():\n"
      "        for i in ring(K, 64, 2):\n            a[i].arrive()\n");
  EXPECT_NE(text.find("mbarrier.init(barriers0[#0], [5])"), std::string::npos) << text;
}

TEST(LanguageConstructs, BatchesStandInFrontOfTheTiles) {
  const auto of = [](const std::string& tiles) {
    return body("    for b, m, n in " + tiles +
                    ":\n        load.global_4(registers(i32, [128], layout=\"(128,1):(1,0)\"), "
                    "A[b.index, m.index, n.index])\n",
                "L: index(), A: Tensor[i32, \"L\", 3, 5]");
  };
  EXPECT_NE(of("tiles(L, 1, 3, 1, 5, 1, persistent=False)")
                .find("tensor0[block // 15, block % 15 // 5, block % 15 % 5]"),
            std::string::npos)
      << of("tiles(L, 1, 3, 1, 5, 1, persistent=False)");
  EXPECT_NE(
      of("tiles(1, 1, 3, 1, 5, 1, persistent=False)").find("tensor0[0, block // 5, block % 5]"),
      std::string::npos)
      << of("tiles(1, 1, 3, 1, 5, 1, persistent=False)");
}

TEST(LanguageConstructs, BlocksOfAClusterHaveTilesBesideEachOther) {
  const auto of = [](const std::string& along) {
    return dumped(
        "@kernel(threads=128, cluster=2)\ndef k(M: index(), A: Tensor[i32, \"M\", 64]):\n"
        "    x = registers(i32, [128], layout=\"(128,1):(1,0)\")\n"
        "    for m, n in tiles(M, 1, 64, 16, cluster=\"" +
        along + "\"):\n        load.global_4(x, A[m.index, n.start])\n");
  };
  const std::string rows = of("rows"), columns = of("columns");
  EXPECT_NE(rows.find("grid max(min(multiprocessors // 2, (M + 1) // 2 * 4), 1) * 2\n"),
            std::string::npos)
      << rows;
  EXPECT_NE(rows.find("tensor0[(block // 2 + #0 * max(blocks // 2, 1)) // 4 * 2 + rank, "),
            std::string::npos)
      << rows;
  EXPECT_NE(columns.find("% 2 * 2 + rank) * 16]"), std::string::npos) << columns;
}

/// 21 tiles on 8 multiprocessors take three turns, for which seven blocks do.
TEST(LanguageConstructs, EvenSharesTakeAsFewBlocksAsTheTurnsNeed) {
  const auto blocks = [](const std::string& how, int64_t tiles,
                         int64_t multiprocessors) -> Result<int64_t> {
    const Result<core::Kernel> kernel =
        elaborate({"k.py",
                   "from tessera.language import *\n@kernel(threads=128, cluster=2)\n"
                   "def k(M: index(), A: Tensor[i32, \"M\", 64]):\n"
                   "    x = registers(i32, [128], layout=\"(128,1):(1,0)\")\n"
                   "    for m in tiles(M, 4, cluster=\"rows\"" +
                       how + "):\n        load.global_4(x, A[m.start, 0])\n"},
                  "k");
    if (!kernel) return error(kernel.error());
    return term::evaluate(kernel->grid,
                          {.symbols = {{"M", 8 * tiles}, {"multiprocessors", multiprocessors}}});
  };
  EXPECT_EQ(blocks("", 21, 17).value_or(0), 16);
  EXPECT_EQ(blocks(", even=True", 21, 17).value_or(0), 14);
  EXPECT_EQ(blocks(", even=True", 3, 17).value_or(0), 6);
  EXPECT_EQ(blocks(", even=True", 24, 17).value_or(0), 16);
  EXPECT_EQ(blocks(", even=True", 9, 1).value_or(0), 2);
}

TEST(LanguageConstructs, EvenSharesAreOfBlocksThatStay) {
  for (const char* how : {"persistent=False", "alternate=True"}) {
    const std::string text =
        dumped("@kernel(threads=128)\ndef k(M: index()):\n    for m in tiles(M, 4, even=True, " +
               std::string(how) + "):\n        pass\n");
    EXPECT_NE(text.find("shares are even where blocks stay"), std::string::npos) << text;
  }
}

TEST(LanguageConstructs, TheClusterMeetsAndItsBarriersAreArrivedAt) {
  const std::string text = dumped(
      "@kernel(cluster=\"BLOCKS\")\ndef k(BLOCKS: const = 2):\n    a = barrier(1)\n"
      "    with role(\"x\", warps=2):\n        a[0].arrive(cluster=True)\n"
      "        sync(\"cluster\")\n");
  EXPECT_NE(text.find("mbarrier.init(barriers0[#0], [4])"), std::string::npos) << text;
  EXPECT_NE(text.find("    mbarrier.arrive_at(barriers0[0], [0])\n"
                      "    mbarrier.arrive_at(barriers0[0], [1])\n"
                      "  cluster.arrive()\n  cluster.wait()\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("cluster.arrive_relaxed()\ncluster.wait()\nrole"), std::string::npos) << text;
}

TEST(LanguageConstructs, AnArrivalInTheClusterReleasesWhereItIsSaid) {
  const auto arriving = [](const std::string& how) {
    return dumped(
        "@kernel(cluster=\"BLOCKS\")\ndef k(BLOCKS: const = 2):\n    a = barrier(1)\n"
        "    with role(\"x\", warps=2):\n        a[0].arrive(" +
        how + ")\n");
  };
  EXPECT_NE(arriving("cluster=True, release=True")
                .find("    mbarrier.arrive(barriers0[0])\n"
                      "    mbarrier.arrive_at(barriers0[0], [(rank + 1) % 2])\n"),
            std::string::npos);
  const std::string alone = arriving("release=True");
  EXPECT_NE(alone.find("`release` is of arrivals in the whole cluster"), std::string::npos)
      << alone;
}

TEST(LanguageConstructs, ATensorMayLackADimension) {
  const std::string text =
      body("    load.global_4(registers(i32, [128], layout=\"(128,1):(1,0)\"), A[block, lane])\n",
           "N: index(), S: index(), A: Tensor[i32, \"N\" if SOME == 1 else None, 128, "
           "strides(\"S\", 1)], SOME: const = 0");
  EXPECT_NE(text.find("tensor0[lane]"), std::string::npos) << text;
  EXPECT_EQ(dumped("@kernel(threads=32)\ndef k(N: index(), S: index(), A: Tensor[i32, 128]):\n"
                   "    sync()\n")
                .find("parameter"),
            std::string::npos);
}

TEST(LanguageConstructs, DimensionsOfOneElementAreInEveryShapeOfACopy) {
  const std::string text = body(
      "    a = shared(bf16, [2, 64, 64], swizzle=128)\n    full = barrier(1)\n"
      "    with one_thread():\n        for b, m in tiles(L, 1, M, 64, group=1):\n"
      "            full[0].expect(a[0])\n            tma.load(A[b, m, :], a[0], full[0])\n",
      "L: index(), M: index(), A: Tensor[bf16, \"L\", \"M\", 64]");
  EXPECT_NE(text.find("map of tensor0 [2, 1, 0] [64, 64, 1] 128B"), std::string::npos) << text;
}

TEST(LanguageConstructs, ARingCountsOverAllLoopsAround) {
  const std::string text = body(
      "    full = barrier(3, arrivals=1)\n    for i in range(N):\n        for j in range(5):\n"
      "            for k in ring(192, 64, 3):\n                full[k].wait()\n",
      "N: index()");
  EXPECT_NE(text.find("mbarrier.wait(barriers0[((#1 * 5 + #2) * ((192 + 63) // 64) + #3) % 3], "
                      "[((#1 * 5 + #2) * ((192 + 63) // 64) + #3) // 3 % 2])"),
            std::string::npos)
      << text;
}

TEST(LanguageConstructs, EveryInstructionIsACall) {
  EXPECT_EQ(body("    x = registers(i32, [128], layout=\"(128,1):(1,0)\")\n"
                 "    shuffle(x, x, 1, 31, 0xffffffff, mode=\"bfly\")\n"
                 "    fence.async_shared()\n    cp_async.wait(0)\n"
                 "    load.global_4.bounded(x, A[lane], inside=lane < 3)\n",
                 "A: Tensor[i32, 128]"),
            "registers i32 [128] (128,1):(1,0)\ndeclare registers0\n"
            "shuffle(registers0[0], registers0[0], [1], [31], [4294967295], mode=bfly)\n"
            "fence.async.shared::cta()\ncp_async.wait([0])\n"
            "load.global.4.bounded(registers0[0], tensor0[lane], [select(lane < 3, 1, 0)])\n");
}

TEST(LanguageConstructs, ThreadsMoveSharedMemoryInVectors) {
  const std::string k = body(
      "    a = shared(f32, [2, 64, 32], swizzle=128)\n"
      "    b = shared(f32, [64, 16], swizzle=64)\n"
      "    x = load(a[1, :, part(1, 16)])\n"
      "    store(2.0 * x, b[:, :])\n");
  for (const char* part : {"load.shared.16(registers0[", "shared0[1, ", "store.shared.16(shared1["})
    EXPECT_NE(k.find(part), std::string::npos) << part << "\n" << k;
}

TEST(LanguageConstructs, ElementsOfSharedMemoryLieAsRegistersDo) {
  const std::string k = dumped(
      "@kernel(threads=128)\ndef k():\n"
      "    a = shared(f32, [64, 32], swizzle=128)\n"
      "    left = registers(f32, [64, 16], layout=\"wgmma_a\")\n"
      "    left[:] = load(a[:, part(0, 16)], like=left)\n");
  for (const char* part :
       {"((4,8,4,1),((1,2,2),2)):((64,1,16,64),((64,8,256),512))", "load.shared.4(registers1["})
    EXPECT_NE(k.find(part), std::string::npos) << part << "\n" << k;
  const std::string refused = body(
      "    a = shared(f32, [64, 32], swizzle=128)\n"
      "    x = load(a[:, :].T)\n");
  EXPECT_NE(refused.find("threads move matrices of shared memory as they lie"), std::string::npos)
      << refused;
}

TEST(LanguageConstructs, FunctionsAreInlinedWithTheirDefaults) {
  EXPECT_EQ(dumped("def pause(n, m=2):\n    wgmma.wait(n)\n    return n + m\n"
                   "@kernel(threads=128)\ndef k(f: fn = pause):\n    wgmma.wait(f(1))\n"
                   "    wgmma.wait(f(0, m=4))\n"),
            "threads 128 cluster 1 blocks 1 grid 1\nwgmma.wait([1])\nwgmma.wait([3])\n"
            "wgmma.wait([0])\nwgmma.wait([4])\n");
}

TEST(LanguageConstructs, ElementsAreComputedWhereTheyAreUsed) {
  const std::string text = body(
      "    x = load(A[:, :])\n    y = maximum(x, 0) * 2 - x\n    x += 1\n    z = x.to(bf16)\n"
      "    store(z, B[:, :])\n",
      "A: Tensor[f32, 4, 128], B: Tensor[bf16, 4, 128, out]");
  EXPECT_NE(text.find("4 x registers0[0 + 4:1] = add(%0, 1) of registers0[0 + 4:1]\n"
                      "declare registers1\n"
                      "4 x registers1[0 + 4:1] = %0 of registers0[0 + 4:1]\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("maximum"), std::string::npos) << text;
}

TEST(LanguageConstructs, WordsOfAKernelAreRefusedOutsideOfItsBody) {
  EXPECT_NE(dumped("x = lane\n@kernel(threads=128)\ndef k():\n    sync()\n")
                .find("`lane` stands outside of a kernel's body"),
            std::string::npos);
}

}  // namespace
}  // namespace tessera::language
