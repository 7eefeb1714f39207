// What is told of a text that is no kernel: the place that is marked, word for word.
#include "core/parse.h"

#include <gtest/gtest.h>

namespace tessera::core {
namespace {

const std::string good =
    R"py(@kernel(threads=128, cluster=1, min_blocks=1, grid=min(multiprocessors, M // 64))
def scale(
    M: Index[64, 65536, 64],
    x: Tensor[f32, (M, 64), (64, 1)],
    y: Tensor[f32, (M, 64), (64, 1), out],
    BM: const = 64,
):
    x_map = tensor_map(x, dims=[1, 0], box=[32, 64], swizzle=128, fill=0)
    a = shared(f32, "(64,32):(32,1)", swizzle=128, at=0)
    full = barriers(2, at=8192)
    with role(loader, warps=[0, 2]) as w:
        if w == 0:
            with elected():
                issue("mbarrier.init", full[0], 1)
                issue("tma.load", a[0, 0], x_map, [0, block * 64], full[0], rank=2)
    with role(worker, warps=[2, 4]) as v:
        r = registers(f32, [64, 2], "(64,2):(1,64)")
        for k in range(0, M // 64):
            sum = carried(k * 2)
            r[0, "2:1"] = map(lambda x0, x1: mul(x0, x1), r[0, "2:1"], k + e, count=2, element=e)
            issue("store.global.8", y[k, lane * 2], r[0])
)py";

/// `good` with one piece exchanged, the piece that is marked, and what is told: code, message,
/// expected, found, help.
struct Bad {
  const char *from, *to, *marked, *told;
};

const Bad bad[] = {
    {"@kernel(threads=128, cluster=1, ", "@kernel(threads=128, ",
     "kernel(threads=128, min_blocks=1, grid=min(multiprocessors, M // 64))",
     "TS0812: `kernel`: missing argument `cluster` | expected `cluster=...`"},
    {"threads=128", "threads=none", "none",
     "TS0812: `threads` is no whole number | expected a number that is written out | found `none`"},
    {"threads=128", "threads=0", "0",
     "TS0812: `threads` is out of range | expected 1 to 65536 | found 0"},
    {"min_blocks=1", "min_block=1", "min_block=1",
     "TS0812: `kernel` takes no `min_block` | expected one of: threads, cluster, min_blocks, "
     "grid, means | help: did you mean `min_blocks`?"},
    {"grid=min(multiprocessors, M // 64)", "grid=min(multiprocessor, M // 64)", "multiprocessor",
     "TS0812: `multiprocessor` is not defined here | expected a name that is defined above, in "
     "this block or around it | help: did you mean `multiprocessors`?"},
    {"M // 64))", "M / 64))", "M / 64",
     "TS0812: `/` is no operator of terms | expected `//`, which rounds down | found `M / 64`"},
    {"M: Index[64, 65536, 64]", "M: Index[64]", "Index[64]",
     "TS0812: the bounds of `M` are not told | expected `Index[low, high]`, perhaps with a modulus "
     "and a residue | found `Index[64]`"},
    {"M: Index[64, 65536, 64]", "M: int", "M",
     "TS0812: `M` is not declared as the core declares parameters | expected `Index[low, high]`, "
     "`Tensor[f32, (M, N), (N, 1)]` or `const = 8`"},
    {"BM: const = 64", "BM: const", "BM",
     "TS0812: the constant `BM` has no value | expected `NAME: const = 8`"},
    {"x: Tensor[f32, (M, 64), (64, 1)]", "x: Tensor[float, (M, 64), (64, 1)]", "float",
     "TS0812: this is no element type | expected one of: f64, f32, bf16, f16, e4m3, e5m2, i64, "
     "i32, i16, i8, u8, b1 | found `float`"},
    {"(64, 1), out]", "(64, 1), output]", "output",
     "TS0812: this is no access | expected `out` or `workspace` | found `output` | help: did you "
     "mean `out`?"},
    {"(M, 64), (64, 1), out]", "(M, 64), 64, out]", "64",
     "TS0812: strides are no tuple | expected `(M, K)`, `(M,)` | found `64`"},
    {"y: Tensor", "x: Tensor", "x",
     "TS0812: `x` is defined already | expected a name that means nothing here yet | found `x`, "
     "which is a tensor"},
    {"tensor_map(x,", "tensor_map(a_map,", "a_map",
     "TS0812: `a_map` is not defined here | expected a name that is defined above, in this block "
     "or around it"},
    {"tensor_map(x,", "tensor_map(M,", "M",
     "TS0812: `M` is no tensor | expected a tensor's name | found an integer"},
    {"dims=[1, 0], ", "", "x_map = tensor_map(x, box=[32, 64], swizzle=128, fill=0)",
     "TS0812: `tensor_map`: missing argument `dims` | expected `dims=...`"},
    {"swizzle=128, fill=0", "swizzle=48, fill=0", "48",
     "TS0812: there is no such swizzle | expected None, 32, 64 or 128 | found `48`"},
    {"fill=0", "fill=1", "1", "TS0812: nothing else fills a box | expected 0 or nan | found `1`"},
    {"\"(64,32):(32,1)\"", "\"(64,32):(32)\"", "\"(64,32):(32)\"",
     "TS0812: this is no layout | expected shape and stride, nested alike: \"(4,8):(8,1)\" | found "
     "`\"(64,32):(32)\"`"},
    {"shared(f32", "share(f32", "share",
     "TS0812: the core has no `share` | expected issue, map, tensor_map, shared, barriers, "
     "registers | help: did you mean `shared`?"},
    {"barriers(2, at=8192)", "barriers(2, 8192)", "8192",
     "TS0812: `barriers` is given too many values | expected 1 without a name"},
    {"role(loader, warps=[0, 2])", "role(loader, warps=[2, 0])", "[2, 0]",
     "TS0812: a role has no such warps | expected [first, end], where first is below end | found "
     "`[2, 0]`"},
    {" as w:", ":", "with role(loader, warps=[0, 2])",
     "TS0812: the warps of role `loader` have no name | expected `as loader_warp`"},
    {"if w == 0:", "if v == 0:", "v",
     "TS0812: `v` is not defined here | expected a name that is defined above, in this block or "
     "around it"},
    {"if w == 0:", "if w == 0 + (w < 1):", "0 + (w < 1)",
     "TS0822: `w < 1` stands where a number is needed"},
    {"if w == 0:", "while w:", "while",
     "TS0804: `while` is not in the language | help: write `for` over a range whose end is known"},
    {"with elected():", "with elect():", "with elect()",
     "TS0812: `with` opens a role or elects a lane | expected `role(...) as warp` or `elected()` | "
     "found `elect()` | help: did you mean `elected`?"},
    {"\"mbarrier.init\"", "\"mbarrier.int\"", "\"mbarrier.int\"",
     "TS0812: there is no instruction `mbarrier.int` | expected a form of docs/instructions.md | "
     "help: did you mean `mbarrier.init`?"},
    {"full[0], 1)", "full[0, 0], 1)", "full[0, 0]",
     "TS0812: `full` has one index | expected the barrier's number | found 2 indices"},
    {"full[0], 1)", "full, 1)", "full",
     "TS0812: `full` has no index | expected `full[...]` | found an array of mbarriers as a whole"},
    {"full[0], 1)", "fill[0], 1)", "fill",
     "TS0812: `fill` is not defined here | expected a name that is defined above, in this block or "
     "around it | help: did you mean `full`?"},
    {"full[0], 1)", "x_map[0], 1)", "x_map",
     "TS0812: `x_map` has no elements | expected shared memory, a tensor, barriers or registers | "
     "found a tensor map"},
    {"block * 64]", "BM * 64]", "BM",
     "TS0812: `BM` is no integer | expected a parameter, a counter or a coordinate | found a "
     "tuner's constant"},
    {"block * 64]", "block ** 64]", "block ** 64",
     "TS0812: `**` is no operator of terms | expected + - * // % ^ & | << >> | found `block ** "
     "64`"},
    {"block * 64]", "block % M0]", "M0",
     "TS0812: `M0` is not defined here | expected a name that is defined above, in this block or "
     "around it | help: did you mean `M`?"},
    {"block * 64]", "block // (w - 1)]", "block // (w - 1)",
     "TS0822: the divisor `w - 1` may be below 1 | expected a divisor that is at least 1 | found "
     "[-1, 0] | help: declare a lower bound of the parameter, or divide by max(1, ...)"},
    {"rank=2", "rnk=2", "rnk=2",
     "TS0812: `tma.load` has no modifier `rnk` | expected one of: rank | help: did you mean "
     "`rank`?"},
    {"rank=2", "rank=2, rank=2", "rank=2",
     "TS0812: `tma.load` is told its `rank` twice | expected each modifier once"},
    {"issue(\"store.global.8\"", "store(", ",",
     "TS0801: expected an expression, found `,` | expected an expression | found `,`"},
    {"issue(\"store.global.8\", y[k, lane * 2], r[0])", "y[0, 0] = r[0]", "y[0, 0] = r[0]",
     "TS0812: this does nothing in the core | expected `issue(...)`, or `out[0, \"4:1\"] = "
     "map(...)` | found `y[0, 0] = r[0]`"},
    {"issue(\"store.global.8\", y[k, lane * 2], r[0])", "k += 1", "k += 1",
     "TS0812: this statement is not one of the core's | expected a storage, `issue`, `map`, `for`, "
     "`if` or `with` | found `k += 1`"},
    {"range(0, M // 64)", "[0, 1]", "[0, 1]",
     "TS0812: a loop counts and does nothing else | expected `range(low, high)` or `unrolled(low, "
     "high)`, perhaps with a step | found `[0, 1]`"},
    {"range(0, M // 64)", "ranges(0, M // 64)", "ranges(0, M // 64)",
     "TS0812: a loop counts and does nothing else | expected `range(low, high)` or `unrolled(low, "
     "high)`, perhaps with a step | found `ranges(0, M // 64)` | help: did you mean `range`?"},
    {"for k in", "for M in", "M",
     "TS0812: `M` is defined already | expected a name that means nothing here yet | found `M`, "
     "which is an integer"},
    {"lambda x0, x1: mul(x0, x1)", "lambda x0, x1: mull(x0, x1)", "mull",
     "TS0812: no pointwise function is called `mull` | expected a function of pointwise/functions/ "
     "| help: did you mean `mul`?"},
    {"lambda x0, x1: mul(x0, x1)", "lambda x0, x1: mul(x0)", "mul(x0)",
     "TS0812: `mul` has other arguments | expected 2 arguments | found 1"},
    {"lambda x0, x1: mul(x0, x1)", "lambda x0: x0", "lambda x0: x0",
     "TS0812: a function has other parameters than there are inputs | expected 2, as many as "
     "inputs | "
     "found 1"},
    {"lambda x0, x1: mul(x0, x1)", "lambda x0, x1: (x0, x1)",
     "r[0, \"2:1\"] = map(lambda x0, x1: (x0, x1), r[0, \"2:1\"], k + e, count=2, element=e)",
     "TS0812: a function has other results than there are runs | expected 1, as many as runs | "
     "found 2"},
    {"lambda x0, x1: mul(x0, x1)", "lambda x0, x1: x0 * x1", "x0 * x1",
     "TS0812: this is no function of single elements | expected a parameter, a number or a call of "
     "a pointwise function"},
    {"r[0, \"2:1\"] = map", "a[0, \"2:1\"] = map", "a",
     "TS0812: `a` is no registers | expected registers: computations read and write nothing else | "
     "found shared memory"},
    {"r[0, \"2:1\"], k", "r[0], k", "r[0]",
     "TS0812: this is no run of element slots | expected the first slot and a layout: `r[0, "
     "\"32:1\"]` | found `r[0]`"},
    {"count=2, ", "",
     "r[0, \"2:1\"] = map(lambda x0, x1: mul(x0, x1), r[0, \"2:1\"], k + e, element=e)",
     "TS0812: `map`: missing argument `count` | expected `count=`, how many elements"},
    {"element=e", "element=k", "k",
     "TS0812: `k` is defined already | expected a name that means nothing here yet | found `k`, "
     "which is an integer"},
    {"r = registers", "full = registers", "full = registers(f32, [64, 2], \"(64,2):(1,64)\")",
     "TS0812: `full` is defined already | expected a name that means nothing here yet | found "
     "`full`, which is an array of mbarriers"},
    {"        r = registers(f32, [64, 2], \"(64,2):(1,64)\")",
     "        r = shared(f32, \"64:1\", swizzle=None, at=0)",
     "r = shared(f32, \"64:1\", swizzle=None, at=0)",
     "TS0812: `r` is declared in a block | expected tensor maps, shared memory and mbarriers in "
     "the kernel's own body"},
    {"lane * 2], r[0])", "lane * 2, r[0])", ")", "TS0801: `)` closes `[` | expected `]`"},
};

std::string told(const Diagnostic& d) {
  std::string out = d.code + ": " + d.message;
  if (!d.expected.empty()) out += " | expected " + d.expected;
  if (!d.found.empty()) out += " | found " + d.found;
  for (const std::string& h : d.helps) out += " | help: " + h;
  return out;
}

TEST(CoreParse, WhatIsWrongIsToldAtItsPlace) {
  ASSERT_TRUE(parse("k.py", good)) << to_text(parse("k.py", good).error());
  for (const Bad& b : bad) {
    std::string text = good;
    const std::size_t at = text.find(b.from);
    ASSERT_NE(at, std::string::npos) << b.from;
    text.replace(at, std::string(b.from).size(), b.to);
    const Result<Kernel> k = parse("k.py", text);
    ASSERT_FALSE(k) << b.to;
    const Diagnostic& d = k.error();
    EXPECT_EQ(told(d), b.told) << b.to;
    ASSERT_FALSE(d.labels.empty()) << b.to;
    const Label& l = d.labels.front();
    EXPECT_EQ(l.line.substr(l.from.column - 1, l.length), b.marked) << b.to;
  }
}

}  // namespace
}  // namespace tessera::core
