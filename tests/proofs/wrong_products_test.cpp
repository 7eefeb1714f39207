// Wrong products that look right where a proof looks at the first of several things, or at one of
// the ways to say something: none of them is proved, and the kernel that they come from is.
#include <gtest/gtest.h>

#include "check/kind.h"
#include "equivalence/equivalence.h"
#include "proofs/checked_kernel.h"

namespace tessera::proofs {
namespace {

constexpr const char* product = R"py(from __future__ import annotations

from tessera.language import *


@kernel(means="C[i, j] = sum(A[i, k] * B[j, k], k)")
def gemm(
    M: index(multiple=8, below=1 << 16), N: index(multiple=8, below=1 << 16), K: index(multiple=8, below=1 << 16),
    A: Tensor[bf16, "M", "K"], B: Tensor[bf16, "N", "K"], C: Tensor[f32, "M", "N", out],
):
    a = shared(bf16, [4, 64, 64], swizzle=128)
    b = shared(bf16, [4, 64, 64], swizzle=128)
    full = barrier(4)
    empty = barrier(4, arrivals=4, starts_complete=True)
    work = tiles(M, 64, N, 64, group=8)
    steps = ring(K, 64, 4)
    with role("loader", warpgroups=1), one_thread():
        for m, n in work:
            for k in steps:
                empty[k].wait()
                full[k].expect(a[k], b[k])
                tma.load(A[m, k], a[k], full[k])
                tma.load(B[n, k], b[k], full[k])
    with role("math", warpgroups=1):
        acc = registers(f32, [64, 64])
        for m, n in work:
            for k in steps:
                full[k].wait()
                wgmma.fence()
                wgmma(a[k], b[k].T, acc, start=k.first)
                wgmma.commit()
                wgmma.wait(0)
                empty[k].arrive()
            store(acc, C[m, n])
)py";

using Edits = std::vector<std::pair<std::string, std::string>>;

check::Report judged_with(const Edits& edits) {
  std::string text = product;
  for (const auto& [from, to] : edits) {
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    if (at != std::string::npos) text.replace(at, from.size(), to);
  }
  const auto kernel = checked_kernel("product.py", text, "gemm", {}, {});
  return kernel ? judged(*kernel) : check::Report{};
}

constexpr const char* tensors = "C: Tensor[f32, \"M\", \"N\", out]";
constexpr const char* with_x = "X: Tensor[f32, \"M\", \"N\"], C: Tensor[f32, \"M\", \"N\", out]";
constexpr const char* sums = "acc = registers(f32, [64, 64])\n";
constexpr const char* in_order = "acc = registers(f32, [64, 64], layout=\"wgmma\")\n";
constexpr const char* stores = "            store(acc, C[m, n])";
constexpr const char* one =
    "        one = registers(f32, [128, 1], layout=\"(128,1):(1,128)\")\n"
    "        one[:] = 1.0\n";

struct Wrong {
  const char* what;
  Edits edits;
  const char* kind;  // that is refuted, or not known
};

const Wrong wrong[] = {
    {"threads add to an operand's slot",
     {{"A: Tensor[bf16", "A: Tensor[f32"},
      {"B: Tensor[bf16", "B: Tensor[f32"},
      {"shared(bf16, [4, 64, 64]", "shared(f32, [4, 64, 32]"},
      {"shared(bf16, [4, 64, 64]", "shared(f32, [4, 64, 32]"},
      {"ring(K, 64, 4)", "ring(K, 32, 4)"},
      {sums, sums + std::string(one)},
      {"                wgmma.fence()",
       "                issue(\"reduce.shared.f32\", a[k.count % 4, warp * 16 + lane % 16, lane // "
       "16], "
       "one, op=\"add\")\n"
       "                fence.async_shared()\n"
       "                sync()\n"
       "                wgmma.fence()"}},
     "k_agreement"},
    {"another turn's condition beside a size's, which always holds",
     {{"group=8)", "group=8, stages=2)"},
      {stores,
       "            if work.turn.index == 2 and M > 0:\n"
       "                acc[:] = acc * 2.0\n"
       "            store(acc, C[m, n])"}},
     "placement"},
    {"a load before the first column, under a condition for its use alone",
     {{"sum(A[i, k] * B[j, k], k)\"",
       "sum(A[i, k] * B[j, k], k) if j < 64 else sum(A[i, k] * B[j, k], k) + X[i, j - 64]\""},
      {tensors, with_x},
      {stores,
       "            x = load(X[m, part(n.index - 1, 64)], like=acc)\n"
       "            if n.start >= 64:\n"
       "                acc[:] = acc + x\n"
       "            store(acc, C[m, n])"}},
     "placement"},
    {"a load beyond its tensor in the loop over k",
     {{tensors, with_x},
      {sums, std::string(in_order) + "        y = registers(f32, [64, 64], layout=\"wgmma\")\n"},
      {"                empty[k].arrive()",
       "                empty[k].arrive()\n"
       "                issue(\"load.global.4\", y, X[m.start + 100000, n.start])"}},
     "placement"},
    {"lanes write one place",
     {{"    full = barrier(4)", "    junk = shared(f32, [4, 32])\n    full = barrier(4)"},
      {sums, sums + std::string(one)},
      {stores,
       "            issue(\"store.shared.4\", junk[warp, lane // 2], one)\n"
       "            sync()\n"
       "            store(acc, C[m, n])"}},
     "race_shared"},
    {"a warp comes twice to one turn of a named barrier",
     {{"    full = barrier(4)", "    turn = named_barrier(1, threads=256)\n    full = barrier(4)"},
      {stores,
       "            turn[0].arrive()\n"
       "            turn[0].wait()\n"
       "            store(acc, C[m, n])"}},
     "named_barriers"},
    {"a factor has other columns than the result",
     {{"B: Tensor[bf16, \"N\"", "B: Tensor[bf16, \"N2\""}},
     "placement"},
    {"a factor has another k",
     {{"    A: Tensor", "    K2: index(multiple=8), A: Tensor"},
      {"B: Tensor[bf16, \"N\", \"K\"]", "B: Tensor[bf16, \"N\", \"K2\"]"}},
     "placement"},
    {"a factor has other rows", {{"A: Tensor[bf16, \"M\"", "A: Tensor[bf16, \"M2\""}}, "placement"},
};

TEST(WrongProducts, AreNotProved) {
  const check::Report right = judged_with({});
  EXPECT_EQ(right.verdict(), check::Verdict::proved) << to_text(right);
  for (const Wrong& w : wrong) {
    SCOPED_TRACE(w.what);
    const check::Report r = judged_with(w.edits);
    EXPECT_NE(r.verdict(), check::Verdict::proved) << to_text(r);
    EXPECT_NE(r.find(w.kind)->verdict, check::Verdict::proved) << to_text(r);
  }
}

/// Extents that have nothing to do with each other leave nothing to compare.
constexpr const char* factor = "B[j, k]";
constexpr const char* copied = "tma.load(B[n, k]";
constexpr const char* copied_beside = "tma.load(B[part(n.index + 1, 64), k]";

/// Where all sums are of columns further on, a tile of the output lies before its rows of B.
TEST(WrongProducts, TheirColumnsMayAllBeMoved) {
  const auto verdict = [](const Edits& edits) { return judged_with(edits).verdict(); };
  EXPECT_EQ(verdict({{factor, "B[j + 64, k]"}, {copied, copied_beside}}), check::Verdict::proved);
  for (const Edits& edits :
       std::vector<Edits>{{{factor, "B[j + 64, k]"}},
                          {{copied, copied_beside}},
                          {{factor, "B[j + 128, k]"}, {copied, copied_beside}},
                          {{factor, "B[j + 64, k]"},
                           {copied, copied_beside},
                           {"C[m, n])", "C[m, part(n.index + 1, 64)])"}},
                          {{"sum(A[i, k] * B[j, k], k)",
                            "sum(A[i, k] * B[j + 64, k], k) + sum(A[i, k] * B[j + 96, k], k)"},
                           {copied, copied_beside}}})
    EXPECT_EQ(verdict(edits), check::Verdict::refuted) << edits.front().second;
}

TEST(WrongProducts, OfWhichNoElementIsMeantAreNotEqual) {
  std::string text = product;
  text.replace(text.find("\"N\", \"K\""), 8, "\"N\", \"K2\"");
  text.insert(text.find("    A: Tensor"), "    K2: index(multiple=8),\n");
  const auto kernel = checked_kernel("product.py", text, "gemm", {}, {});
  ASSERT_TRUE(kernel);
  const auto means = check::means_of(*kernel);
  ASSERT_TRUE(means && *means);
  const equivalence::Answer a = equivalence::compare(*kernel, **means, judged(*kernel).sizes);
  EXPECT_EQ(a.elements, 0);
  EXPECT_EQ(a.verdict, equivalence::Verdict::undecided) << to_text(a);
}

/// One warpgroup's results go to the other's place, overwrite what lies there, or are overwritten:
/// which it is, named barriers decide, not the order of the text.
TEST(WrongProducts, WhoseWarpsOverwriteEachOther) {
  const Edits edits = {
      {"C: Tensor[f32", "C: Tensor[bf16"},
      {"a = shared(bf16, [4, 64, 64]", "a = shared(bf16, [4, 128, 64]"},
      {"    full = barrier(4)",
       "    staging = shared(bf16, [2, 64, 64], swizzle=128)\n    full = barrier(4)"},
      {"arrivals=4", "arrivals=8"},
      {"tiles(M, 64, ", "tiles(M, 128, "},
      {"    steps =", "    turn = named_barrier(2, threads=256)\n    steps ="},
      {"role(\"math\", warpgroups=1)", "role(\"math\", warpgroups=2)"},
      {sums, "acc = registers(f32, [128, 64])\n        result = registers(bf16, [128, 64])\n"},
      {stores, R"py(            with one_thread("warpgroup"):
                bulk.wait_read(0)
            sync()
            result[:] = acc
            if warpgroup == 1:
                turn[0].wait()
                stmatrix(result, staging[0])
                fence.async_shared()
                turn[1].arrive()
            if warpgroup == 0:
                stmatrix(result, staging[0])
                fence.async_shared()
                turn[0].arrive()
                turn[1].wait()
            if warpgroup == 1:
                stmatrix(result, staging[1])
                fence.async_shared()
            sync("warpgroup")
            with one_thread("warpgroup"):
                tma.store(staging[warpgroup], C[m, n][part(warpgroup, 64), :])
                bulk.commit()
        with one_thread("warpgroup"):
            bulk.wait_read(0))py"}};
  const check::Report r = judged_with(edits);
  EXPECT_NE(r.verdict(), check::Verdict::proved) << to_text(r);
  EXPECT_NE(to_text(r).find("two warps store to one place"), std::string::npos) << to_text(r);
}

/// What comes to an assertion through more registers than walks of the loop try.
TEST(WrongProducts, WhoseTagsChangeAfterManyTurns) {
  const Edits edits = {
      {sums,
       std::string(in_order) +
           "        x = [registers(f32, [64, 1], like=acc), registers(f32, [64, 1], like=acc), "
           "registers(f32, [64, 1], like=acc), registers(f32, [64, 1], like=acc), "
           "registers(f32, [64, 1], like=acc), registers(f32, [64, 1], like=acc)]\n"},
      {"            for k in steps:\n                full[k].wait()",
       "            for o in static_range(6):\n"
       "                x[o][:] = 0.0\n"
       "                tag(x[o], z=lambda i, j: 0)\n"
       "            for k in steps:\n"
       "                full[k].wait()"},
      {"                empty[k].arrive()",
       "                empty[k].arrive()\n"
       "                for e in static_range(5):\n"
       "                    x[5 - e][:] = x[4 - e]\n"
       "                tag(x[0], z=lambda i, j: 1)\n"
       "                assert_tag(x[5], z=lambda i, j: 0)"}};
  const check::Report r = judged_with(edits);
  EXPECT_NE(r.find("tags")->verdict, check::Verdict::proved) << to_text(r);
}

}  // namespace
}  // namespace tessera::proofs
