// Functions of the sums on their way out, stores from registers, batches and operands with m or n
// contiguous: right kernels are proved, those with an edit are not.
#include <gtest/gtest.h>

#include "arch/arch.h"
#include "base/thorough.h"

#include "check/check.h"
#include "check/kind.h"
#include "core/testing/gemm.h"
#include "core/testing/mutate.h"
#include "core/verify.h"

namespace tessera::check {
namespace {

using core::testing::Epilogue;
using core::testing::GemmShape;

core::Kernel made(const GemmShape& s) {
  const Result<core::Kernel> k = core::testing::gemm(s);
  if (!k) ADD_FAILURE() << to_text(k.error());
  return *k;
}

Report judged(const core::Kernel& k) {
  const Result<std::optional<Means>> m = means_of(k);
  if (!m) ADD_FAILURE() << to_text(m.error());
  return check(k, {}, *m);
}

/// Proved, and a kernel that the machine can run.
void expect_proved(const GemmShape& s) {
  const core::Kernel k = made(s);
  for (const Diagnostic& d : core::verify(k, **arch::find("sm_90a")))
    ADD_FAILURE() << k.means << "\n" << to_text(d);
  const Report r = judged(k);
  EXPECT_EQ(r.verdict(), Verdict::proved) << k.means << "\n" << to_text(r);
  EXPECT_EQ(r.coverage.reached, r.coverage.all());
}

TEST(CheckEpilogue, FunctionsOfTheSumsAreProved) {
  for (const Epilogue e : {Epilogue::relu, Epilogue::bias, Epilogue::residual})
    for (const bool direct : {false, true})
      expect_proved({.bn = 128, .stages = 2, .epilogue = e, .direct = direct});
}

TEST(CheckEpilogue, StoresFromRegistersAreProved) {
  expect_proved({.stages = 2, .result = DType::float32, .direct = true});
  expect_proved({.bm = 64, .bn = 64, .stages = 2, .direct = true});
  expect_proved({.bn = 128,
                 .stages = 2,
                 .result = DType::float32,
                 .epilogue = Epilogue::residual,
                 .direct = true,
                 .two = true});
}

TEST(CheckEpilogue, BatchesAreProved) {
  expect_proved({.bn = 128, .stages = 2, .batched = true});
  expect_proved({.bn = 128, .stages = 2, .batched = true, .one_a = true});
  expect_proved({.bn = 128, .stages = 2, .batched = true, .one_b = true});
  expect_proved(
      {.bn = 128, .stages = 2, .batched = true, .epilogue = Epilogue::residual, .direct = true});
}

TEST(CheckEpilogue, OperandsWithRowsContiguousAreProved) {
  expect_proved({.bn = 128, .stages = 2, .b_rows = true});
  expect_proved({.bn = 256, .stages = 2, .a_rows = true, .b_rows = true});
  expect_proved({.bm = 64, .bn = 192, .stages = 2, .batched = true, .a_rows = true});
}

TEST(CheckEpilogue, ClustersAreProved) {
  for (const bool beside : {false, true}) {
    expect_proved({.bn = 128, .stages = 3, .cluster = 2, .beside = beside});
    expect_proved(
        {.bn = 128, .stages = 3, .cluster = 2, .beside = beside, .a_rows = true, .b_rows = true});
    expect_proved({.bn = 256,
                   .stages = 4,
                   .cluster = 2,
                   .beside = beside,
                   .batched = true,
                   .epilogue = Epilogue::residual});
  }
}

/// Every loop over turns ends one turn early, in all roles.
// NOLINTNEXTLINE(misc-no-recursion): bodies nest
void shorten(core::Body& body) {
  for (core::Op& op : body) {
    if (auto* loop = std::get_if<core::For>(&op.node); loop != nullptr && !loop->unroll) {
      if (loop->counter->symbol->name == "turn") loop->upper = loop->upper - 1;
    }
    if (auto* branch = std::get_if<core::If>(&op.node)) shorten(branch->body);
    if (auto* elected = std::get_if<core::Elected>(&op.node)) shorten(elected->body);
    if (auto* role = std::get_if<core::Role>(&op.node)) shorten(role->body);
  }
}

TEST(CheckEpilogue, TilesThatBatchesOrClustersLeaveOutAreFound) {
  for (const GemmShape& s : {GemmShape{.bn = 128, .stages = 2, .batched = true},
                             GemmShape{.bn = 128, .stages = 3, .cluster = 2},
                             GemmShape{.bn = 128, .stages = 3, .cluster = 2, .beside = true}}) {
    core::Kernel k = made(s);
    shorten(k.body);
    const Report r = judged(k);
    const Finding* f = r.find("output_once");
    ASSERT_EQ(f->verdict, Verdict::refuted) << to_text(r);
    EXPECT_EQ(f->diagnostics.front().message, "a tile of the output is written by no block");
  }
}

void expect_refuted(const GemmShape& s, int least) {
  const core::Kernel k = made(s);
  int all = 0;
  for (const core::testing::Mutant& m : core::testing::result_mutants(k)) {
    const Report r = judged(m.kernel);
    ++all;
    EXPECT_EQ(r.verdict(), Verdict::refuted) << k.means << "\n"
                                             << m.name << " " << m.site << ": " << m.edit << "\n"
                                             << to_text(r);
  }
  EXPECT_GE(all, least);
}

TEST(CheckEpilogue, EditsOfResultsAreRefuted) {
  expect_refuted({.bn = 128, .stages = 2, .epilogue = Epilogue::residual}, 10);
  expect_refuted(
      {.bn = 128, .stages = 2, .batched = true, .epilogue = Epilogue::residual, .direct = true},
      10);
  expect_refuted({.bn = 128, .stages = 2, .a_rows = true, .b_rows = true}, 4);
  // The blocks beside each other are ./dev test all's.
  const bool all_ways = thorough();
  for (const bool beside : all_ways ? std::vector{false, true} : std::vector{false})
    expect_refuted({.bn = 128, .stages = 3, .cluster = 2, .beside = beside}, 12);
}

/// The first diagnostic of the n-th edit of this name, in one line.
std::string said(const GemmShape& s, const std::string& name, int site) {
  for (const core::testing::Mutant& m : core::testing::result_mutants(made(s)))
    if (m.name == name && m.site == site)
      for (const Finding& f : judged(m.kernel).findings)
        for (const Diagnostic& d : f.diagnostics)
          return fmt::format("{}: {} | {} | {}", f.kind->name, d.message, d.expected, d.found);
  return "nothing";
}

TEST(CheckEpilogue, SaysWhatIsStoredAndWhatIsMeant) {
  const GemmShape residual{.bm = 64, .bn = 64, .stages = 2, .epilogue = Epilogue::residual};
  const std::string of_another =
      "placement: an element of the output gets another function than "
      "the meaning has | ";
  EXPECT_EQ(said(residual, "other_constant", 0),
            of_another +
                "C[i, j] = (X1[i, j] + relu((X0[j] + sum[i, j] * 0.5))) | (X1[i, j] + "
                "relu((X0[j] + sum[i, j] * 1.5)))");
  EXPECT_EQ(said(residual, "first_slot", 0),
            of_another +
                "C[i, j] = (X1[i, j] + relu((X0[j] + sum[i, j] * 0.5))) | (X1[i, j] + "
                "relu((X0[j + 56] + sum[i, j] * 0.5)))");
  EXPECT_EQ(
      said({.bm = 64, .bn = 64, .stages = 2, .band = 1, .direct = true}, "unbounded", 0),
      "placement: an access leaves the tensor `C` | `row of the tile + 16 * consumer_warp + 8 "
      "* (pair % 2) + lane // 4 < M` | not at M = 8, N = 8, K = 8, block = 0, blocks = 1, turn "
      "= 0");
  EXPECT_EQ(
      said({.bm = 64, .bn = 64, .stages = 2, .batched = true}, "next_batch", 0),
      "k_agreement: a product multiplies elements of different batches | A and B of one batch "
      "| apart by 1");
  EXPECT_EQ(said({.bm = 64, .bn = 128, .stages = 2, .b_rows = true}, "panel_twice", 0),
            "placement: an element of the output gets the sum of another | C[corner + 0, corner + "
            "64] has the sum of row 0 of A and row 64 of B | that of row 0 of A and row 0 of B");
  EXPECT_EQ(
      said({.bm = 64, .bn = 64, .stages = 2, .b_rows = true}, "turned_b", 0),
      "k_agreement: an operand is read along another axis than it lies | transpose_b = 1 | 0");
}

}  // namespace
}  // namespace tessera::check
