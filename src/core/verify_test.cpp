// Right kernels are refused nothing; kernels that no text can say are refused.
#include "core/verify.h"

#include <gtest/gtest.h>

#include "core/builder.h"
#include "core/parse.h"
#include "core/print.h"
#include "core/testing/gemm.h"

namespace tessera::core {
namespace {

std::vector<Diagnostic> verified(const Kernel& k) {
  return verify(k, **arch::find("sm_90a"));
}

std::string all(const std::vector<Diagnostic>& found) {
  std::string out;
  for (const Diagnostic& d : found) out += to_text(d) + "\n";
  return out;
}

TEST(CoreVerify, ProductsAreRight) {
  for (const testing::GemmShape& s :
       {testing::GemmShape{},
        {.bm = 64, .bn = 64, .stages = 2},
        {.bm = 128, .bn = 128, .stages = 3, .band = 1},
        {.bm = 192, .bn = 192, .stages = 2, .element = DType::float16}}) {
    const Result<Kernel> k = testing::gemm(s);
    ASSERT_TRUE(k) << to_text(k.error());
    const auto found = verified(*k);
    EXPECT_TRUE(found.empty()) << all(found);
  }
}

/// Kernels with what the product lacks: all right.
const char* const right[] = {
    // A product of a warp, by ldmatrix.
    R"py(@kernel(threads=64, cluster=1, min_blocks=2, grid=1)
def warps(
    C: Tensor[f32, (32, 8), (8, 1), out],
):
    a = shared(f16, "(32,16):(24,1)", swizzle=None, at=0)
    b = shared(f16, "(8,16):(24,1)", swizzle=None, at=1536)
    fa = registers(f16, [32, 16], "((4,8,2),(2,2,2)):((64,1,16),(32,8,256))")
    fb = registers(f16, [8, 16, 2], "((4,8,2),(2,2)):((16,1,128),(8,64))")
    fc = registers(f32, [32, 8], "((4,8,2),(2,2)):((64,1,16),(32,8))")
    issue("ldmatrix", fa[0], a[warp * 16 + lane % 16, lane // 16 * 8], matrices=4)
    issue("ldmatrix", fb[0], b[lane % 8, lane // 8 * 8], matrices=2)
    fc[0, "4:1"] = map(lambda: 0, count=4)
    issue("mma.m16n8k16.f32.f16.f16", fc[0], fa[0], fb[0], fc[0])
    for i in unrolled(0, 2):
        issue("store.global.8", C[warp * 16 + i * 8 + lane // 4, lane % 4 * 2], fc[i * 2])
)py",
    // B contiguous in n, A in registers.
    R"py(@kernel(threads=128, cluster=1, min_blocks=1, grid=1)
def transposed():
    b = shared(bf16, "((64,2),64):((1,4096),64)", swizzle=128, at=0)
    fa = registers(bf16, [64, 64], "((4,8,4),(2,2,2,4)):((128,1,16),(64,8,512,1024))")
    acc = registers(f32, [64, 128], "((4,8,4),(2,2,16)):((128,1,16),(64,8,512))")
    issue("wgmma.fence")
    for k in unrolled(0, 4):
        issue("wgmma.f32.bf16.bf16.rs", acc[0], fa[k * 8], b[0, k * 16], 1, 1, 1, 1, n=128)
    issue("wgmma.commit")
    issue("wgmma.wait", 0)
)py",
    // Rows of any length by bounded loads, one lane of each warp at a barrier, cp.async.
    R"py(@kernel(threads=96, cluster=1, min_blocks=1, grid=(M + 2) // 3)
def rows(
    M: Index[1, 1000000],
    N: Index[1, 1000000],
    x: Tensor[f32, (M, N), (N, 1)],
    y: Tensor[f32, (M,), (1,), out],
):
    line = shared(f32, "(3,32):(32,1)", swizzle=None, at=0)
    ready = barriers(3, at=384)
    v = registers(f32, [96, 2], "(96,2):(1,96)")
    flag = registers(i32, [96], "(96,1):(1,0)")
    v[1, "1:0"] = map(lambda: 0, count=1)
    for i in range(lane, N, 32):
        v[0, "1:0"] = map(lambda: 0, count=1)
        issue("load.global.4.bounded", v[0], x[block * 3 + warp, i], select(block * 3 + warp < M, 1, 0))
        v[1, "1:0"] = map(lambda x0, x1: add(x0, x1), v[0, "1:0"], v[1, "1:0"], count=1)
    for s in unrolled(0, 5):
        issue("shuffle", v[0], v[1], 16 >> s, 31, -1, mode="bfly")
        v[1, "1:0"] = map(lambda x0, x1: add(x0, x1), v[0, "1:0"], v[1, "1:0"], count=1)
    flag[0, "1:0"] = map(lambda x0: x0, lane == 0, count=1)
    if lane == 0 and block * 3 + warp < M:
        issue("mbarrier.init", ready[warp], 1)
        issue("store.global.4", y[block * 3 + warp], v[1])
    if block * 3 + warp < M:
        issue("cp_async.4", line[warp, lane], x[block * 3 + warp, 0])
    issue("cp_async.commit")
    issue("cp_async.wait", 0)
    if lane < 16:
        issue("load.shared.8", v[0], line[warp, lane * 2])
)py",
};

TEST(CoreVerify, OtherKernelsAreRight) {
  for (const char* const text : right) {
    const Result<Kernel> k = parse("k.py", text);
    ASSERT_TRUE(k) << to_text(k.error());
    const auto found = verified(*k);
    EXPECT_TRUE(found.empty()) << all(found);
  }
}

/// What no text can say, built by hand: the message that comes first.
std::string first_of(const std::function<void(Builder&)>& write) {
  Builder b("built", 128);
  write(b);
  const Result<Kernel> k = b.finish();
  if (!k) return to_text(k.error());
  const auto found = verified(*k);
  return found.empty() ? "right" : found.front().code + ": " + found.front().message;
}

TEST(CoreVerify, TermsAreKnownWhereTheyStand) {
  const auto wait = [](Builder& b, Term t) {
    b.issue("mbarrier.arrive", {BarrierAt{b.barriers("full", 2), t}});
  };
  EXPECT_EQ(first_of([&](Builder& b) { wait(b, b.number(1)); }), "right");
  EXPECT_EQ(first_of([&](Builder& b) { wait(b, b.number(2)); }),
            "TS0814: the slot of `full` lies outside");
  EXPECT_EQ(first_of([&](Builder& b) {
              Term i;
              b.unrolled("i", 2, [&](Term t) { i = t; });
              wait(b, i);
            }),
            "TS0818: `i` is not known here");
  EXPECT_EQ(first_of([&](Builder& b) { wait(b, Term()); }),
            "TS0818: a term is missing, or of another kernel's pool");
  EXPECT_EQ(first_of([&](Builder& b) {
              static term::Pool other;
              wait(b, other.constant(0));
            }),
            "TS0818: a term is missing, or of another kernel's pool");
  EXPECT_EQ(first_of([&](Builder& b) {
              const auto* memory = *b.kernel().pool->memory("table", 1, {b.number(0), b.number(2)});
              wait(b, b.take(b.kernel().pool->read(memory, {b.number(0)})));
            }),
            "TS0818: `table[0]` reads a memory that the kernel does not have");
}

TEST(CoreVerify, StructureIsHeldTo) {
  EXPECT_EQ(first_of([](Builder& b) { b.barriers("with", 1); }), "TS0813: `with` is no name");
  EXPECT_EQ(first_of([](Builder& b) {
              b.barriers("x", 1);
              b.barriers("x", 1);
            }),
            "TS0813: two things are called `x`");
  EXPECT_EQ(first_of([](Builder& b) { b.when(b.number(1), [] {}); }),
            "TS0818: `1` stands where a condition is needed");
  EXPECT_EQ(first_of([](Builder& b) { b.elected([&] { b.role("r", 0, 4, [](Term) {}); }); }),
            "TS0818: role `r` stands in a block");
  EXPECT_EQ(first_of([](Builder& b) {
              b.role("r", 0, 2, [](Term) {});
              b.role("r", 2, 2, [](Term) {});
            }),
            "TS0818: two roles are called `r`");
  EXPECT_EQ(
      first_of([](Builder& b) { b.loop("k", b.number(0), b.number(4), b.number(0), [](Term) {}); }),
      "TS0818: a loop's step may be below 1");
  EXPECT_EQ(first_of([](Builder& b) { b.kernel().grid = b.at().block; }),
            "TS0818: the grid is not known at the launch");
  EXPECT_EQ(first_of([](Builder& b) {
              b.kernel().threads = 96;
              b.issue("wgmma.fence");
              b.issue("wgmma.fence");
            }),
            "TS0817: `wgmma.fence` is issued by the wrong threads");
}

TEST(CoreVerify, RegistersBelongToThoseWhoDeclareThem) {
  const auto zero = [](Builder& b, RegistersId r) {
    auto dag = std::make_shared<pointwise::Dag>();
    dag->results = {dag->add_constant(0)};
    b.compute({dag, {}, {core::Run{r, b.number(0), Layout(1, 0)}}, 1, {}});
  };
  const Layout one(IntTuple::flat({128, 1}), IntTuple::flat({1, 0}));
  EXPECT_EQ(first_of([&](Builder& b) {
              const RegistersId r = b.registers("r", DType::float32, {128}, one);
              b.when(equals(b.at().warp, b.number(0)), [&] { zero(b, r); });
            }),
            "right");
  EXPECT_EQ(first_of([&](Builder& b) {
              const RegistersId r = b.registers("r", DType::float32, {128}, one);
              b.role("all", 0, 4, [&](Term) { zero(b, r); });
            }),
            "TS0815: `r` is not declared here");
  EXPECT_EQ(first_of([&](Builder& b) {
              RegistersId r;
              b.when(equals(b.at().warp, b.number(0)),
                     [&] { r = b.registers("r", DType::float32, {128}, one); });
              zero(b, r);
            }),
            "TS0815: `r` is not declared here");
}

TEST(CoreVerify, AnArchitectureWithoutTheInstructionIsTold) {
  Builder b("built", 128);
  b.issue("wgmma.fence");
  const auto found = verify(b.finish().value(), **arch::find("sm_80"));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].message, "`wgmma.fence` is no instruction of sm_80");
}

}  // namespace
}  // namespace tessera::core
