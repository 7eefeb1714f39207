// Kernel to text and back: what was printed is the kernel, whole.
#include <gtest/gtest.h>

#include "core/builder.h"
#include "core/parse.h"
#include "core/print.h"
#include "core/testing/gemm.h"
#include "core/testing/same.h"

namespace tessera::core {
namespace {

/// Every kind of storage, argument and op that the product lacks, in the form that is printed.
const char* const texts[] = {
    R"py(@kernel(threads=32, cluster=1, min_blocks=1, grid=1)
def nothing():
    pass
)py",
    R"py(@kernel(threads=64, cluster=2, min_blocks=3, grid=min(multiprocessors, (M + 63) // 64) // 2 * 2)
def storages(
    M: Index[8, 65537, 8, 3],
    N: Index[None, M],
    L: Index[None, None],
    x: Tensor[f32, (M, N), (N, 1)],
    s: Tensor[f64, (), ()],
    y: Tensor[e4m3, (M,), (1,), out],
    scratch: Tensor[u8, (M + 1, 4), (4, 1), workspace],
    BM: const = 64,
    SHIFT: const = -3,
):
    x_map = tensor_map(x, dims=[1, 0], box=[32, 64], swizzle=128, fill=nan, rounded=True)
    y_map = tensor_map(y, dims=[0], box=[64], swizzle=None, fill=0)
    a = shared(f32, "((4,8),32):((32,128),1)", swizzle=128, at=0)
    b = shared(i8, "64:1", swizzle=32, at=4096)
    c = shared(f16, "(8,32):(32,1)", swizzle=64, at=5120)
    full = barriers(2, at=8192)
    one = barriers(1, at=8208)
)py",
    R"py(@kernel(threads=256, cluster=2, min_blocks=1, grid=2)
def arguments(
    M: Index[1, 4097],
    x: Tensor[f32, (M, 64), (64, 1)],
    s: Tensor[f32, (), ()],
    y: Tensor[f32, (M,), (1,), out],
):
    x_map = tensor_map(x, dims=[1, 0], box=[32, 64], swizzle=128, fill=0)
    y_map = tensor_map(y, dims=[0], box=[64], swizzle=None, fill=0)
    a = shared(f32, "(64,32):(32,1)", swizzle=128, at=0)
    line = shared(f32, "64:1", swizzle=None, at=8192)
    full = barriers(2, at=8448)
    v = registers(f32, [128, 4], "((32,8),4):((1,32),256)")
    old = registers(f32, [256], "(256,1):(1,0)")
    issue("load.global.16", v[0], x[lane, warp * 4])
    issue("load.global.4", old[0], s[()])
    with role(loader, warps=[0, 2]) as w:
        if w == 0 and lane == 0:
            issue("mbarrier.init", full[0], 1)
            issue("tma.load", a[0, 0], x_map, [0, block * 64], full[rank], rank=2)
            issue("tma.load", line[0], y_map, 0, full[1], rank=1)
        elected_once = registers(b1, [64], "(64,1):(1,0)")
        with elected():
            issue("mbarrier.arrive_at", full[0], rank ^ 1)
    with role(worker, warps=[4, 8]) as worker_warp:
        r = registers(i32, [128, 2], "((32,4),2):((1,32),128)")
        issue("warp.reduce", r[0], r[1], -1, op="add.s32")
        issue("cluster.arrive")
)py",
    R"py(@kernel(threads=128, cluster=1, min_blocks=1, grid=blocks_of)
def computations(
    blocks_of: Index[1, 129],
):
    acc = registers(f32, [128, 8], "(128,8):(1,128)")
    out = registers(bf16, [128, 8], "(128,8):(1,128)")
    sum = registers(f32, [128, 2], "(128,2):(1,128)")
    acc[0, "8:1"] = map(lambda: 0.5, count=8)
    sum[0, "1:0"] = map(lambda: -inf, count=1)
    for k in range(0, blocks_of):
        for j in unrolled(0, 8, 2):
            acc[j, "2:1"] = map(lambda x0, x1: add(x0, mul(x1, -1.5)), acc[j, "2:1"], k * 2 + e2, count=2, element=e2)
    for i in range(lane, blocks_of * 32, 32):
        pass
    acc[0, "8:1"], sum[0, "8:0"] = map(lambda x0, x1: (mul((t0 := exp2(x0)), (t1 := add(t0, 1e-30))), add(x1, t1)), acc[0, "8:1"], sum[0, "8:0"], count=8)
    if lane < 16 or not warp == 1:
        out[0, "(2,4):(4,1)"] = map(lambda x0, x1: x0, acc[0, "8:1"], select(lane % 2 == 0, e, 7), count=8, element=e)
    else:
        if True:
            pass
        else:
            out[0, "1:0"] = map(lambda x0: where(lt(x0, 1e+30), nan, inf), acc[7, "1:0"], count=1)
)py",
    // Terms that are written more than once have names: before a branch whose both sides have them,
    // in each of two loops that count alike, never for what a counter further in is part of.
    R"py(@kernel(threads=32, cluster=1, min_blocks=1, grid=1)
def names(
    M: Index[1, 1024],
    i2: Tensor[f32, (M,), (1,)],
):
    r = registers(f32, [32], "(32,1):(1,0)")
    i0 = (M + lane) // 2
    if lane < 16:
        issue("load.global.4", r[0], i2[i0])
    else:
        issue("load.global.4", r[0], i2[i0 - 1])
    i1 = M // 4 + lane
    for k in range(0, M):
        i3 = k // 3 * 2
        issue("load.global.4", r[0], i2[i3])
        issue("load.global.4", r[0], i2[i3 + 1])
        issue("load.global.4", r[0], i2[i1])
    for k in range(0, M):
        i4 = k // 3 * 2 + i1
        issue("load.global.4", r[0], i2[i4])
        issue("load.global.4", r[0], i2[i4 * 2])
        issue("load.global.4", r[0], i2[k // 5 + 3])
    r[0, "1:0"] = map(lambda x0, x1: x0, (lane + e) * 2 + 1, (lane + e) * 2 + 1, count=1, element=e)
)py",
};

TEST(CoreText, PrintsWhatItParsed) {
  for (const char* const text : texts) {
    const Result<Kernel> k = parse("k.py", text);
    ASSERT_TRUE(k) << to_text(k.error());
    EXPECT_EQ(to_string(*k), text);
    const Result<Kernel> again = parse("k.py", to_string(*k));
    ASSERT_TRUE(again) << to_text(again.error());
    EXPECT_TRUE(testing::same(*k, *again)) << text;
  }
}

TEST(CoreText, ProductsOfManyShapesComeBack) {
  for (const testing::GemmShape& s : {testing::GemmShape{},
                                      {.bm = 64, .bn = 64, .stages = 2},
                                      {.bm = 128, .bn = 128, .bk = 32, .stages = 3, .band = 1},
                                      {.bm = 192, .bn = 192, .element = DType::float16}}) {
    const Result<Kernel> k = testing::gemm(s);
    ASSERT_TRUE(k) << to_text(k.error());
    const std::string text = to_string(*k);
    const Result<Kernel> read = parse("gemm.py", text);
    ASSERT_TRUE(read) << to_text(read.error()) << "\n" << text;
    EXPECT_EQ(to_string(*read), text);
    EXPECT_TRUE(testing::same(*k, *read)) << text;
  }
}

TEST(CoreText, ABuiltKernelComesBack) {
  Builder b("built", 64);
  const Term n = b.parameter("n", 1, 100);
  b.tensor({"x", DType::float32, {n}, {b.number(1)}, Access::output});
  b.kernel().constants["BLOCK"] = 64;
  const RegistersId r = b.registers("r", DType::float32, {64, 2},
                                    Layout(IntTuple::flat({64, 2}), IntTuple::flat({1, 64})));
  const Term e = b.take(b.kernel().pool->coordinate("e", 2));
  auto dag = std::make_shared<pointwise::Dag>();
  const int x = dag->add_operand(0);
  const int twice = dag->add_call("add", {x, x});
  dag->results = {dag->add_call("mul", {twice, twice})};
  b.compute({dag, {e + b.at().lane}, {core::Run{r, b.number(0), Layout(2, 1)}}, 2, e});
  b.loop("i", b.number(0), n, b.number(4), [&](Term i) {
    b.when(less(i, b.at().block), [] {}, [&] { b.elected([&] { b.issue("grid.wait"); }); });
  });
  const Result<Kernel> k = b.finish();
  ASSERT_TRUE(k) << to_text(k.error());
  const Result<Kernel> read = parse("built.py", to_string(*k));
  ASSERT_TRUE(read) << to_text(read.error());
  EXPECT_EQ(to_string(*read), to_string(*k));
  EXPECT_TRUE(testing::same(*k, *read)) << to_string(*k);
}

TEST(CoreText, OtherWordsForTheSameAreTheSameKernel) {
  const Result<Kernel> k = parse("k.py", texts[3]);
  ASSERT_TRUE(k) << to_text(k.error());
  std::string other = texts[3];
  const auto exchange = [&](const std::string& from, const std::string& to) {
    ASSERT_NE(other.find(from), std::string::npos) << from;
    other.replace(other.find(from), from.size(), to);
  };
  exchange("    acc =", "    # sums\n    acc =");
  exchange("lambda x0, x1: add(x0, mul(x1, -1.5))", "lambda a, b: add(a, mul(b, -1.5))");
  exchange("lane < 16 or", "16 > lane or");
  exchange("select(lane % 2 == 0, e, 7)", "(e if lane % 2 == 0 else 7)");
  exchange("    else:\n        if True", "    elif True");
  other = other.substr(0, other.find("            pass\n        else")) +
          R"py(        pass
    else:
        out[0, "1:0"] = map(lambda x0: where(lt(x0, 1e+30), nan, inf), acc[7, "1:0"], count=1)
)py";
  const Result<Kernel> read = parse("k.py", other);
  ASSERT_TRUE(read) << to_text(read.error());
  EXPECT_TRUE(testing::same(*k, *read)) << to_string(*read);
}

/// A change of one piece of a text makes another kernel.
TEST(CoreText, WhatDiffersIsNotTheSame) {
  struct Edit {
    int text;
    const char *from, *to;
  };
  for (const Edit& edit : {Edit{1, "threads=64", "threads=96"},
                           {1, "8, 3]", "8, 2]"},
                           {1, "Index[None, M]", "Index[0, M]"},
                           {1, ", workspace]", ", out]"},
                           {1, "BM: const = 64", "BM: const = 65"},
                           {1, "box=[32, 64]", "box=[32, 32]"},
                           {1, "fill=nan", "fill=0"},
                           {1, ", rounded=True", ""},
                           {1, "at=5120", "at=6144"},
                           {1, "barriers(1, at=8208)", "barriers(1, at=8216)"},
                           {2, "rank=2", "rank=3"},
                           {2, "block * 64", "block * 32"},
                           {2, "op=\"add.s32\"", "op=\"add.u32\""},
                           {2, "warps=[0, 2]", "warps=[0, 3]"},
                           {2, "r[1], -1", "r[1], -2"},
                           {3, "mul(x1, -1.5)", "mul(x1, 1.5)"},
                           {3, "unrolled(0, 8, 2)", "range(0, 8, 2)"},
                           {3, "\"(2,4):(4,1)\"", "\"(2,4):(1,2)\""},
                           {3, "lane < 16 or", "lane < 15 or"}}) {
    std::string text = texts[edit.text];
    const std::string from = edit.from;
    ASSERT_NE(text.find(from), std::string::npos) << from;
    text.replace(text.find(from), from.size(), edit.to);
    const Result<Kernel> a = parse("k.py", texts[edit.text]), b = parse("k.py", text);
    ASSERT_TRUE(b) << to_text(b.error());
    EXPECT_FALSE(testing::same(*a, *b)) << edit.to;
    EXPECT_NE(to_string(*a), to_string(*b));
  }
}

TEST(CoreText, PlacesAreKept) {
  const Result<Kernel> k = parse("k.py", texts[2]);
  ASSERT_TRUE(k) << to_text(k.error());
  const auto text_of = [&](Span s) { return std::string(k->source->text(s)); };
  EXPECT_EQ(text_of(k->span), "arguments");
  EXPECT_EQ(text_of(k->barriers[0].span), "full = barriers(2, at=8448)");
  EXPECT_EQ(text_of(k->tensors[0].span), "x: Tensor[f32, (M, 64), (64, 1)]");
  const auto* load = k->body[2].as<Issue>();
  ASSERT_NE(load, nullptr);
  EXPECT_EQ(text_of(k->body[2].span), "issue(\"load.global.16\", v[0], x[lane, warp * 4])");
  ASSERT_EQ(load->spans.size(), 2u);
  EXPECT_EQ(text_of(load->spans[1]), "x[lane, warp * 4]");
}

}  // namespace
}  // namespace tessera::core
