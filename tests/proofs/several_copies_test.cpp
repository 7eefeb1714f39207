// Products of one turn whose operands come by several copies, or by parts that the warpgroup
// chooses: each element of k is summed once, by every warpgroup.
#include <gtest/gtest.h>

#include "check/kind.h"
#include "proofs/checked_kernel.h"

namespace tessera::proofs {
namespace {

/// Two copies a turn, of each of which the products take a half.
constexpr const char* two_copies = R"py(from __future__ import annotations
from tessera.language import *


@kernel(means="C[i, j] = sum(A[i, k] * B[j, k], k)")
def gemm(
    M: index(multiple=8),
    N: index(multiple=8),
    K: index(multiple=8),
    A: Tensor[bf16, "M", "K"],
    B: Tensor[bf16, "N", "K"],
    C: Tensor[f32, "M", "N", out],
):
    a = [shared(bf16, [2, 128, 64], swizzle=128), shared(bf16, [2, 128, 64], swizzle=128)]
    b = [shared(bf16, [2, 64, 64], swizzle=128), shared(bf16, [2, 64, 64], swizzle=128)]
    full = barrier(2, arrivals=1)
    empty = barrier(2, arrivals=8, starts_complete=True)
    steps = ring(K, 64, 2)
    work = tiles(M, 128, N, 64)
    with role("producer", warps=4), one_thread():
        for m, n in work:
            for k in steps:
                empty[k].wait()
                full[k].expect(a[0][k], b[0][k], a[1][k], b[1][k])
                tma.load(A[m, k], a[0][k], full[k])
                tma.load(B[n, k], b[0][k], full[k])
                tma.load(A[m, part(k.index, 64)], a[1][k], full[k])
                tma.load(B[n, part(k.index, 64)], b[1][k], full[k])
    with role("consumer", warpgroups=2):
        sums = registers(f32, [128, 64], layout="wgmma")
        for m, n in work:
            for k in steps:
                full[k].wait()
                wgmma.fence()
                wgmma(a[0][k, :, part(0, 32)], b[0][k, :, part(0, 32)].T, sums, start=k.first)
                wgmma(a[1][k, :, part(1, 32)], b[1][k, :, part(1, 32)].T, sums)
                wgmma.commit()
                wgmma.wait(0)
                empty[k].arrive()
            store(sums, C[m, n])
)py";

/// The verdict of the kernel with `from`, wherever it stands, replaced.
check::Report judged_with(const std::string& from, const std::string& to) {
  std::string text = two_copies;
  for (auto at = text.find(from); !from.empty() && at != std::string::npos;
       at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  EXPECT_TRUE(from.empty() || text != two_copies);
  const auto kernel = checked_kernel("two_copies.py", text, "gemm", {}, {});
  return kernel ? judged(*kernel) : check::Report{};
}

void expect_refuted(const std::string& from, const std::string& to, const std::string& found) {
  const check::Report r = judged_with(from, to);
  const std::string said = to_text(r);
  EXPECT_EQ(r.verdict(), check::Verdict::refuted) << said;
  EXPECT_EQ(r.find("reduction")->verdict, check::Verdict::refuted) << said;
  EXPECT_NE(said.find(found), std::string::npos) << said;
}

TEST(SeveralCopies, OfOneTurnAreProved) {
  const check::Report r = judged_with("", "");
  EXPECT_EQ(r.verdict(), check::Verdict::proved) << to_text(r);
}

/// Each copy brings the half that its product takes, the later one first.
TEST(SeveralCopies, EachOfAPartAreProved) {
  std::string text = two_copies;
  const auto all = [&](const std::string& from, const std::string& to) {
    for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
  };
  all("[2, 128, 64], swizzle=128", "[2, 128, 32], swizzle=64");
  all("[2, 64, 64], swizzle=128", "[2, 64, 32], swizzle=64");
  all("A[m, k]", "A[m, k[part(1, 32)]]");
  all("B[n, k]", "B[n, k[part(1, 32)]]");
  all("A[m, part(k.index, 64)]", "A[m, k[part(0, 32)]]");
  all("B[n, part(k.index, 64)]", "B[n, k[part(0, 32)]]");
  all("[k, :, part(0, 32)]", "[k]");
  all("[k, :, part(1, 32)]", "[k]");
  const auto kernel = checked_kernel("two_copies.py", text, "gemm", {}, {});
  ASSERT_TRUE(kernel);
  const check::Report r = judged(*kernel);
  EXPECT_EQ(r.verdict(), check::Verdict::proved) << to_text(r);
}

TEST(SeveralCopies, OfAnotherTurnAreRefuted) {
  expect_refuted("part(k.index, 64)", "part(k.index + 1, 64)", "k = corner + 96");
}

TEST(SeveralCopies, APartThatTheWarpgroupChoosesIsRefuted) {
  expect_refuted("a[0][k, :, part(0, 32)], b[0][k, :, part(0, 32)]",
                 "a[0][k, :, part(warpgroup, 32)], b[0][k, :, part(warpgroup, 32)]",
                 "warp 8 (4 of role `consumer`)");
}

}  // namespace
}  // namespace tessera::proofs
