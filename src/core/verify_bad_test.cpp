// What the verifier refuses of a kernel: the place that is marked, word for word.
#include <gtest/gtest.h>

#include "core/parse.h"
#include "core/verify.h"

namespace tessera::core {
namespace {

std::string told(const Diagnostic& d) {
  std::string out = d.code + ": " + d.message;
  if (!d.expected.empty()) out += " | expected " + d.expected;
  if (!d.found.empty()) out += " | found " + d.found;
  for (const std::string& n : d.notes) out += " | " + n;
  for (const std::string& h : d.helps) out += " | help: " + h;
  return out;
}

std::string all(const std::vector<Diagnostic>& found) {
  std::string out;
  for (const Diagnostic& d : found) out += to_text(d) + "\n";
  return out;
}

/// A product of 64 rows a block, small enough to read.
const std::string product = R"py(@kernel(threads=256, cluster=1, min_blocks=1, grid=(M + 63) // 64)
def product(
    M: Index[8, 65536, 8],
    K: Index[8, 65536, 8],
    A: Tensor[bf16, (M, K), (K, 1)],
    B: Tensor[bf16, (64, K), (K, 1)],
    C: Tensor[bf16, (M, 64), (64, 1), out],
):
    A_map = tensor_map(A, dims=[1, 0], box=[64, 64], swizzle=128, fill=0)
    B_map = tensor_map(B, dims=[1, 0], box=[64, 64], swizzle=128, fill=0)
    C_map = tensor_map(C, dims=[1, 0], box=[64, 64], swizzle=128, fill=0)
    a = shared(bf16, "(2,64,64):(4096,64,1)", swizzle=128, at=0)
    b = shared(bf16, "(2,64,64):(4096,64,1)", swizzle=128, at=16384)
    c = shared(bf16, "(64,64):(64,1)", swizzle=128, at=32768)
    full = barriers(2, at=40960)
    empty = barriers(2, at=40976)
    if warp == 0:
        with elected():
            for s in unrolled(0, 2):
                issue("mbarrier.init", full[s], 1)
                issue("mbarrier.init", empty[s], 4)
            issue("fence.mbarrier_init")
    issue("barrier.sync", 0, 256)
    with role(producer, warps=[0, 4]) as p:
        issue("setmaxnreg.dec", 40)
        if p == 0:
            with elected():
                for k in range(0, (K + 63) // 64):
                    issue("mbarrier.wait", empty[k % 2], (k // 2 + 1) % 2)
                    issue("mbarrier.arrive_expect_tx", full[k % 2], 16384)
                    issue("tma.load", a[k % 2, 0, 0], A_map, [k * 64, block * 64], full[k % 2], rank=2)
                    issue("tma.load", b[k % 2, 0, 0], B_map, [k * 64, 0], full[k % 2], rank=2)
    with role(consumer, warps=[4, 8]) as w:
        issue("setmaxnreg.inc", 256)
        acc = registers(f32, [64, 64], "((4,8,4),(2,2,8)):((128,1,16),(64,8,512))")
        out = registers(bf16, [64, 64], "((4,8,4),(2,2,8)):((128,1,16),(64,8,512))")
        for k in range(0, (K + 63) // 64):
            issue("mbarrier.wait", full[k % 2], k // 2 % 2)
            issue("wgmma.fence")
            for step in unrolled(0, 4):
                issue("wgmma.f32.bf16.bf16.ss", acc[0], a[k % 2, 0, step * 16], b[k % 2, 0, step * 16], select(k == 0 and step == 0, 0, 1), 1, 1, 0, 0, n=64)
            issue("wgmma.commit")
            issue("wgmma.wait", 0)
            with elected():
                issue("mbarrier.arrive", empty[k % 2])
        out[0, "32:1"] = map(lambda x0: x0, acc[0, "32:1"], count=32)
        for j in unrolled(0, 4):
            issue("stmatrix", c[w * 16 + lane % 16, j * 16 + lane // 16 * 8], out[j * 8], matrices=4)
        issue("fence.async.shared::cta")
        issue("barrier.sync", 1, 128)
        if w == 0:
            with elected():
                issue("tma.store", C_map, [0, block * 64], c[0, 0], rank=2)
                issue("bulk.commit")
                issue("bulk.wait_read", 0)
)py";

/// One piece exchanged: how many diagnostics there are, the first one's mark and words.
struct Bad {
  const char *from, *to;
  int count;
  const char *marked, *told;
};
const Bad bad[] = {
    {"        issue(\"setmaxnreg.dec\", 40)\n",
     "        if K < 64:\n            issue(\"setmaxnreg.dec\", 40)\n", 1,
     "issue(\"setmaxnreg.dec\", 40)",
     "TS0819: could not decide whether all warps of a role change registers | expected setmaxnreg "
     "in the role's own body | help: move it out of branches and loops"},
    {"threads=256", "threads=250", 1, "product",
     "TS0818: a block has no such number of threads | expected a multiple of 32, at most 1024 | "
     "found 250"},
    {"grid=(M + 63) // 64", "grid=M // 64", 1, "product",
     "TS0818: the grid is not made of whole clusters | expected a multiple of 1, at least 1 | "
     "found `M // 64` | at M = 8"},
    {"K: Index[8, 65536, 8]", "K: Index[8, 65536, 4]", 2,
     "A_map = tensor_map(A, dims=[1, 0], box=[64, 64], swizzle=128, fill=0)",
     "TS0813: `A_map` has a stride that TMA does not take | expected a multiple of 16 bytes | "
     "found `K` | at K = 12"},
    {"K: Index[8, 65536, 8]", "K: Index[8, None, 8]", 4,
     "A_map = tensor_map(A, dims=[1, 0], box=[64, 64], swizzle=128, fill=0)",
     "TS0813: `A_map` has an extent that TMA does not take | expected 1 to 2^32 elements | found "
     "`K` | at K = 4294967304"},
    {"A_map = tensor_map(A, dims=[1, 0]", "A_map = tensor_map(A, dims=[0, 1]", 2,
     "A_map = tensor_map(A, dims=[0, 1], box=[64, 64], swizzle=128, fill=0)",
     "TS0813: `A_map` has a first stride that TMA does not take | expected 1: the first of `dims` "
     "is the contiguous one | found `K` | at K = 8"},
    {"B_map = tensor_map(B, dims=[1, 0], box=[64, 64]",
     "B_map = tensor_map(B, dims=[1, 0], box=[128, 64]", 2,
     "B_map = tensor_map(B, dims=[1, 0], box=[128, 64], swizzle=128, fill=0)",
     "TS0813: `B_map`: a row of a box has 256 bytes in swizzle 128B | expected at most 128 | help: "
     "copy it by several boxes, or without a swizzle"},
    {"B_map = tensor_map(B, dims=[1, 0], box=[64, 64]",
     "B_map = tensor_map(B, dims=[1, 0], box=[32, 64]", 1, "b[k % 2, 0, 0]",
     "TS0816: the box of `B_map` does not lie in `b` as TMA lays it | expected modes of [32, 64] "
     "elements, fastest first | found \"(2,64,64):(4096,64,1)\""},
    {"C_map = tensor_map(C, dims=[1, 0]", "C_map = tensor_map(C, dims=[1, 2]", 1,
     "C_map = tensor_map(C, dims=[1, 2], box=[64, 64], swizzle=128, fill=0)",
     "TS0813: `C_map` names a dimension that `C` does not have, or twice | expected dimensions 0 "
     "to 1, each once | found 2"},
    {"swizzle=128, at=32768", "swizzle=128, at=32896", 4,
     "c = shared(bf16, \"(64,64):(64,1)\", swizzle=128, at=32896)",
     "TS0813: `c` does not begin where its swizzle does | expected a multiple of 1024 bytes, for "
     "swizzle 128 | found byte 32896 | help: at=33792"},
    {"swizzle=128, at=32768", "swizzle=128, at=230400", 1,
     "c = shared(bf16, \"(64,64):(64,1)\", swizzle=128, at=230400)",
     "TS0813: the block has more shared memory than sm_90a has | expected at most 232448 bytes | "
     "found 238592 bytes"},
    {"swizzle=128, at=32768", "swizzle=64, at=32768", 1, "c[0, 0]",
     "TS0816: `C_map` and `c` have different swizzles | expected swizzle=128, as the map has | "
     "found swizzle=64"},
    {"c = shared(bf16", "c = shared(f16", 1, "c[0, 0]",
     "TS0816: `C_map` and `c` have different element types | expected bf16, as `C` has | found "
     "f16"},
    {"empty = barriers(2, at=40976)", "empty = barriers(2, at=40968)", 1,
     "empty = barriers(2, at=40968)",
     "TS0813: `full` and `empty` share mbarriers | expected bytes of its own for each | found "
     "bytes 40960 to 40975 and 40968 to 40983"},
    {"empty = barriers(2, at=40976)", "empty = barriers(2, at=40944)", 1,
     "empty = barriers(2, at=40944)",
     "TS0813: `empty` and `c` share bytes | expected mbarriers outside of all shared memory that "
     "holds elements | found bytes 40944 to 40959 and 32768 to 40959"},
    {"C: Tensor[bf16, (M, 64), (64, 1), out]", "C: Tensor[bf16, (M, 64), (64, 1)]", 1, "C_map",
     "TS0814: `tma.store` writes `C`, which is an input | expected a tensor that is `out` or "
     "`workspace`"},
    {"c = shared(bf16, \"(64,64):(64,1)\"", "c = shared(bf16, \"(64,64):(56,1)\"", 1, "c[0, 0]",
     "TS0816: the box of `C_map` does not lie in `c` as TMA lays it | expected a mode with stride "
     "64: the box is 4096 elements without gaps | found \"(64,64):(56,1)\" | help: lay it out with "
     "the box's dimensions, [64, 64], fastest first"},
    {"b = shared(bf16, \"(2,64,64):(4096,64,1)\"", "b = shared(bf16, \"(2,64,64):(4096,1,64)\"", 1,
     "b[k % 2, 0, step * 16]",
     "TS0816: `b` does not lie as `wgmma.f32.bf16.bf16.ss` reads it | expected row 1 of the matrix "
     "128 bytes behind its start: atoms of 8 x 64 elements, k contiguous, swizzle 128 | found 2 "
     "bytes behind, by \"(2,64,64):(4096,1,64)\""},
    {", [k * 64, block * 64], full[k % 2], rank=2)", ", [k * 64, block * 64], rank=2)", 1,
     "issue(\"tma.load\", a[k % 2, 0, 0], A_map, [k * 64, block * 64], rank=2)",
     "TS0814: `tma.load` is given the wrong number of arguments | expected 4: to, map, at, barrier "
     "| found 3"},
    {"issue(\"tma.load\", a[k % 2, 0, 0]", "issue(\"tma.load\", full[k % 2]", 1, "full[k % 2]",
     "TS0814: `tma.load` is given the wrong kind of argument for `to` | expected shared memory: "
     "`a[...]` | found `full[k % 2]`, which is an mbarrier"},
    {"A_map, [k * 64, block * 64], full[k % 2], rank=2",
     "A_map, [k * 64, block * 64], full[k % 2], rank=3", 2, "A_map",
     "TS0814: `tma.load` and `A_map` have different ranks | expected rank=2 | found rank=3"},
    {"A_map, [k * 64, block * 64], full[k % 2], rank=2", "A_map, block * 64, full[k % 2], rank=2",
     1, "block * 64",
     "TS0814: `tma.load` is given the wrong number of integers for `at` | expected 2 | found 1: "
     "`block * 64`"},
    {"a[k % 2, 0, 0], A_map", "a[k % 2, 8, 0], A_map", 1, "a[k % 2, 8, 0]",
     "TS0816: the box of `A_map` of 64 along mode 1 of `a` lies outside | expected 0 | found `8` | "
     "at p = 0"},
    {"a[k % 2, 0, 0], A_map", "a[k % 3, 0, 0], A_map", 1, "a[k % 3, 0, 0]",
     "TS0814: index 0 of `a` lies outside | expected 0 to 1 | found `k % 3` | at K = 65528, p = 0, "
     "k = 2"},
    {"empty[k % 2], (k // 2 + 1) % 2", "empty[k % 2], k // 2 + 1", 1, "k // 2 + 1",
     "TS0814: `parity` of `mbarrier.wait` is out of range | expected 0 to 1 | found `k // 2 + 1` | "
     "at K = 65528, p = 0, k = 2"},
    {"full[k % 2], 16384", "full[k], 16384", 1, "full[k]",
     "TS0814: the slot of `full` lies outside | expected 0 to 1 | found `k` | at K = 65528, p = 0, "
     "k = 2"},
    {"issue(\"wgmma.wait\", 0)", "issue(\"wgmma.wait\", k % 2)", 1, "k % 2",
     "TS0814: `pending` of `wgmma.wait` is not constant | expected constants and counters of "
     "unrolled loops: it stands in the instruction | found `k % 2`"},
    {"issue(\"wgmma.wait\", 0)", "issue(\"wgmma.wait\", 8)", 1, "8",
     "TS0814: `pending` of `wgmma.wait` is out of range | expected 0 to 7 | found 8"},
    {"setmaxnreg.dec\", 40", "setmaxnreg.dec\", 44", 1, "44",
     "TS0814: `registers` of `setmaxnreg.dec` is out of range | expected 24 to 256 in steps of 8 | "
     "found 44"},
    {"setmaxnreg.inc\", 256", "setmaxnreg.inc\", 240", 1, "issue(\"setmaxnreg.inc\", 240)",
     "TS0818: setmaxnreg.inc does not go up | expected at least 256, which a thread has here | "
     "found 240"},
    {"        issue(\"setmaxnreg.dec\", 40)\n",
     "        if p == 0:\n            issue(\"setmaxnreg.dec\", 40)\n", 2,
     "issue(\"setmaxnreg.dec\", 40)",
     "TS0817: `setmaxnreg.dec` is issued by the wrong threads | expected all four warps of a "
     "warpgroup, or none | found warps that `p == 0` divides | at p = 1 | help: ask of `p // 4`"},
    {"min_blocks=1", "min_blocks=2", 1, "with role(consumer, warps=[4, 8])",
     "TS0818: roles claim more registers than the block has | expected at most 32768: 256 threads "
     "of 128 registers | found 37888: `producer` 128 x 40, `consumer` 128 x 256 | help: give back "
     "more in the roles that need less"},
    {"n=64)", "n=68)", 1,
     "issue(\"wgmma.f32.bf16.bf16.ss\", acc[0], a[k % 2, 0, step * 16], b[k % 2, 0, step * 16], "
     "select(k == 0 and step == 0, 0, 1), 1, 1, 0, 0, n=68)",
     "TS0814: `wgmma.f32.bf16.bf16.ss` has no n = 68 | expected one of: 8, 16, 24, 32, 40, 48, 56, "
     "64, 72, 80, 88, 96, 104, 112, 120, 128, 136, 144, 152, 160, 168, 176, 184, 192, 200, 208, "
     "216, 224, 232, 240, 248, 256"},
    {"n=64)", "n=128)", 1, "acc[0]",
     "TS0815: slots of `acc` lie outside | expected 0 to 31 | found 0 to 63"},
    {"1, 1, 0, 0, n=64)", "1, 1, 0, 1, n=64)", 1, "b[k % 2, 0, step * 16]",
     "TS0816: `b` does not lie as `wgmma.f32.bf16.bf16.ss` reads it | expected row 1 of the matrix "
     "2 bytes behind its start: atoms of 64 x 8 elements, rows contiguous, swizzle 128 | found 128 "
     "bytes behind, by \"(2,64,64):(4096,64,1)\""},
    {"b[k % 2, 0, step * 16]", "b[k % 2, 0, step * 20]", 1, "b[k % 2, 0, step * 20]",
     "TS0816: the matrix of `b`, 16 along mode 2 lies outside | expected 0 to 48 | found `step * "
     "20` | at step = 3"},
    {"a[k % 2, 0, step * 16], b", "a[k % 2, 0, step], b", 1, "a[k % 2, 0, step]",
     "TS0816: the matrix of `a` does not begin at the first row of an atom | expected within the "
     "first 128 of every 1024 bytes, at a multiple of 16 | found byte `8192 * (k % 2) + 2 * step` "
     "| at K = 8, k = 0, step = 1"},
    {"acc = registers(f32, [64, 64], \"((4,8,4),(2,2,8)):((128,1,16),(64,8,512))\")",
     "acc = registers(f32, [64, 64], \"((4,8,4),(2,2,8)):((128,1,16),(8,64,512))\")", 1, "acc[0]",
     "TS0815: `acc` is not laid out as `d` of `wgmma.f32.bf16.bf16.ss` | expected its neighbours "
     "along rows and along columns to be neighbours along two axes of the tile | found 1 and 8 "
     "elements apart in a tile of [64, 64]"},
    {"acc = registers(f32, [64, 64], \"((4,8,4),(2,2,8)):((128,1,16),(64,8,512))\")",
     "acc = registers(f32, [64, 64], \"((4,8,2),(2,2,8)):((128,1,16),(64,8,512))\")", 1,
     "acc = registers(f32, [64, 64], \"((4,8,2),(2,2,8)):((128,1,16),(64,8,512))\")",
     "TS0815: `acc` is laid out over the wrong number of threads | expected 128, the threads of "
     "role `consumer` | found 64"},
    {"acc = registers(f32, [64, 64], \"((4,8,4),(2,2,8)):((128,1,16),(64,8,512))\")",
     "acc = registers(f32, [64, 64], \"((8,4,4),(2,2,8)):((1,128,16),(64,8,512))\")", 1, "acc[0]",
     "TS0815: `acc` is not laid out as `d` of `wgmma.f32.bf16.bf16.ss` | expected its neighbours "
     "along rows and along columns to be neighbours along two axes of the tile | found 4 and 64 "
     "elements apart in a tile of [64, 64]"},
    {"acc = registers(f32", "acc = registers(f16", 1, "acc[0]",
     "TS0815: `d` of `wgmma.f32.bf16.bf16.ss` holds no elements of f16 | expected f32 | found f16"},
    {"acc = registers(f32, [64, 64]", "acc = registers(f32, [64, 32]", 1,
     "acc = registers(f32, [64, 32], \"((4,8,4),(2,2,8)):((128,1,16),(64,8,512))\")",
     "TS0815: `acc` holds elements outside of its tile | expected elements 0 to 2047 | found "
     "element 4095"},
    {"out[j * 8], matrices", "out[j * 10], matrices", 1, "out[j * 10]",
     "TS0815: slots of `out` lie outside | expected 0 to 31 | found 30 to 37"},
    {"out[j * 8], matrices", "out[j * 7], matrices", 1, "out[j * 7]",
     "TS0815: `from` of `stmatrix` begins within a register | expected a multiple of 2 slots of "
     "`out` | found slot 7"},
    {"out[j * 8], matrices", "out[lane % 4 * 8], matrices", 1, "out[lane % 4 * 8]",
     "TS0815: the slot of `out` is not known before the kernel runs | expected constants and "
     "counters of unrolled loops | found `lane % 4 * 8` | help: unroll the loop, or keep what is "
     "indexed in shared memory"},
    {"out[0, \"32:1\"] = map", "out[0, \"32:2\"] = map", 1,
     "out[0, \"32:2\"] = map(lambda x0: x0, acc[0, \"32:1\"], count=32)",
     "TS0815: slots of `out` lie outside | expected 0 to 31 | found 0 to 62"},
    {"out[0, \"32:1\"] = map", "out[0, \"16:1\"] = map", 1,
     "out[0, \"16:1\"] = map(lambda x0: x0, acc[0, \"32:1\"], count=32)",
     "TS0815: a run of `out` has the wrong number of elements | expected 32, the count | found 16: "
     "\"16:1\""},
    {"lane // 16 * 8], out", "lane // 16 * 4], out", 1,
     "c[w * 16 + lane % 16, j * 16 + lane // 16 * 4]",
     "TS0814: `to` of `stmatrix` is not aligned | expected a multiple of 16 bytes | found byte "
     "`2048 * w + 32 * j + 128 * (lane % 16) + 8 * (lane // 16) + 32768` | at lane = 16, w = 0, j "
     "= 0"},
    {"c[w * 16 + lane % 16, j", "c[w * 16 + lane, j", 1,
     "c[w * 16 + lane, j * 16 + lane // 16 * 8]",
     "TS0814: index 0 of `c` lies outside | expected 0 to 63 | found `w * 16 + lane` | at lane = "
     "16, w = 3"},
    {"            issue(\"wgmma.fence\")",
     "            with elected():\n                issue(\"wgmma.fence\")", 1,
     "issue(\"wgmma.fence\")",
     "TS0817: `wgmma.fence` is issued by the wrong threads | expected the 128 threads of a "
     "warpgroup together | found one elected lane | help: move it out of `with elected():`"},
    {"        issue(\"barrier.sync\", 1, 128)",
     "        if lane < 16:\n            issue(\"barrier.sync\", 1, 128)", 1,
     "issue(\"barrier.sync\", 1, 128)",
     "TS0817: `barrier.sync` is issued by the wrong threads | expected the 32 lanes of a warp "
     "together | found lanes that `lane < 16` divides | help: move it to where all lanes come"},
    {"            issue(\"wgmma.commit\")",
     "            if w < 2:\n                issue(\"wgmma.commit\")", 1, "issue(\"wgmma.commit\")",
     "TS0817: `wgmma.commit` is issued by the wrong threads | expected all four warps of a "
     "warpgroup, or none | found warps that `w < 2` divides | at w = 2 | help: ask of `w // 4`"},
    {"            issue(\"wgmma.commit\")",
     "            if w % 2 == 0:\n                issue(\"wgmma.commit\")", 1,
     "issue(\"wgmma.commit\")",
     "TS0817: `wgmma.commit` is issued by the wrong threads | expected all four warps of a "
     "warpgroup, or none | found warps that `w % 2 == 0` divides | at w = 1 | help: ask of `w // "
     "4`"},
    {"        if p == 0:\n            with elected():",
     "        if p == 0:\n            if lane < 2:", 2,
     "issue(\"tma.load\", a[k % 2, 0, 0], A_map, [k * 64, block * 64], full[k % 2], rank=2)",
     "TS0817: `tma.load` is issued by the wrong threads | expected one lane of a warp | found "
     "every lane that comes here: it acts once for each | help: put it into `with elected():`"},
    {"role(consumer, warps=[4, 8])", "role(consumer, warps=[5, 8])", 3,
     "issue(\"setmaxnreg.inc\", 256)",
     "TS0817: `setmaxnreg.inc` is issued by the wrong threads | expected warpgroups: four warps, "
     "the first a multiple of four in the block | found warps 5 to 7 | help: give the role whole "
     "warpgroups"},
    {"role(consumer, warps=[4, 8])", "role(consumer, warps=[3, 7])", 2,
     "with role(consumer, warps=[3, 7])",
     "TS0818: roles `producer` and `consumer` share warps | expected every warp in one role at "
     "most | found warps 0 to 3 and 3 to 6"},
    {"role(consumer, warps=[4, 8])", "role(consumer, warps=[8, 12])", 1,
     "with role(consumer, warps=[8, 12])",
     "TS0818: role `consumer` has warps beyond the block's | expected warps 0 to 7 | found 8 to "
     "11"},
    {"for j in unrolled(0, 4)", "for j in range(0, 4)", 1, "out[j * 8]",
     "TS0815: the slot of `out` is not known before the kernel runs | expected constants and "
     "counters of unrolled loops | found `j * 8` | help: unroll the loop, or keep what is indexed "
     "in shared memory"},
    {"for k in range(0, (K + 63) // 64):\n                    issue",
     "for k in unrolled(0, (K + 63) // 64):\n                    issue", 1,
     "for k in unrolled(0, (K + 63) // 64)",
     "TS0818: an unrolled loop has bounds that change | expected constants | help: write `range` "
     "for a loop that counts at run time"},
    {"[k * 64, 0], full", "[k * 64, multiprocessors], full", 1, "[k * 64, multiprocessors]",
     "TS0818: `multiprocessors` is not known here | expected parameters, coordinates, counters of "
     "the loops around it | found `multiprocessors`"},
    {"[k * 64, 0], full", "[k * 64, warp], full", 1, "[k * 64, warp]",
     "TS0818: `warp` is not known here | expected parameters, coordinates, counters of the loops "
     "around it | found `warp` | help: in role `producer` say `p`: the warp's place in the role"},
    {"[k * 64, 0], full", "[k * 64, k < 2], full", 1, "[k * 64, k < 2]",
     "TS0818: `k < 2` stands where a number is needed | expected a number: `select(..., 1, 0)`"},
    {"        for k in range(0, (K + 63) // 64):\n            issue",
     "        wide = registers(f32, [256], \"(256,1):(1,0)\")\n        for k in range(0, (K + 63) "
     "// 64):\n            issue",
     1, "wide = registers(f32, [256], \"(256,1):(1,0)\")",
     "TS0815: `wide` is laid out over the wrong number of threads | expected 128, the threads of "
     "role `consumer` | found 256"},
    {"        issue(\"barrier.sync\", 1, 128)",
     "        for i in range(lane, 32, 32):\n            issue(\"barrier.sync\", 1, 128)", 1,
     "issue(\"barrier.sync\", 1, 128)",
     "TS0817: `barrier.sync` is issued by the wrong threads | expected the 32 lanes of a warp "
     "together | found lanes that `lane` divides | help: move it to where all lanes come"},
    {"b[k % 2, 0, step * 16]", "b[lane % 2, 0, step * 16]", 1, "b[lane % 2, 0, step * 16]",
     "TS0814: threads that issue `wgmma.f32.bf16.bf16.ss` together pass different `b` | expected "
     "the same in all 128 threads of a warpgroup | found `lane % 2` | at lane = 1"},
    {"barrier.sync\", 1, 128", "barrier.sync\", lane // 16, 128", 1, "lane // 16",
     "TS0814: threads that issue `barrier.sync` together pass different `id` | expected the same "
     "in all 32 lanes of a warp | found `lane // 16` | at lane = 16"},
    {"select(k == 0 and step == 0, 0, 1)", "select(w == 0, 0, 1)", 1, "select(w == 0, 0, 1)",
     "TS0814: threads that issue `wgmma.f32.bf16.bf16.ss` together pass different `accumulate` | "
     "expected the same in all 128 threads of a warpgroup | found `select(w == 0, 0, 1)` | at w = "
     "1"},
    {"M: Index[8, 65536, 8]", "M: Index[8, 8, 8]", 1, "product",
     "TS0818: `M` has no value | expected a value from 8 on, below 8 | help: what is proved for "
     "all launches is proved of none"},
    {"barrier.sync\", 1, 128", "barrier.sync\", 1, 100", 1, "100",
     "TS0814: `threads` of `barrier.sync` is out of range | expected 32 to 256 in steps of 32 | "
     "found 100"},
    {"wgmma.f32.bf16.bf16.ss", "wgmma.f32.f16.f16.ss", 2, "a[k % 2, 0, step * 16]",
     "TS0816: `a` holds another element type than `wgmma.f32.f16.f16.ss` reads | expected f16 | "
     "found bf16"},
};

TEST(CoreVerifyBad, WhatIsWrongIsToldAtItsPlace) {
  for (const Bad& b : bad) {
    std::string text = product;
    const std::size_t at = text.find(b.from);
    ASSERT_NE(at, std::string::npos) << b.from;
    text.replace(at, std::string(b.from).size(), b.to);
    const Result<Kernel> k = parse("k.py", text);
    ASSERT_TRUE(k) << to_text(k.error());
    const auto found = verify(*k, **arch::find("sm_90a"));
    ASSERT_FALSE(found.empty()) << b.to;
    EXPECT_EQ(static_cast<int>(found.size()), b.count) << all(found);
    const Diagnostic& d = found.front();
    EXPECT_EQ(told(d), b.told) << b.to;
    ASSERT_FALSE(d.labels.empty()) << b.to;
    const Label& l = d.labels.front();
    EXPECT_EQ(l.line.substr(l.from.column - 1, l.length), b.marked) << b.to;
  }
}

}  // namespace
}  // namespace tessera::core
