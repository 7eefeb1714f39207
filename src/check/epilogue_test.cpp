// Functions of the sums on their way out, stores from registers, batches and operands with m or n
// contiguous: right kernels are proved, those with an edit are not.
#include <gtest/gtest.h>

#include "arch/arch.h"

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
  for (const bool beside : {false, true})
    expect_refuted({.bn = 128, .stages = 3, .cluster = 2, .beside = beside}, 12);
}

}  // namespace
}  // namespace tessera::check
