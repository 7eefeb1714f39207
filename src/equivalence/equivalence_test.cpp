// Generated products, right ones and wrong ones. Kernel files: tests/proofs/equivalence_test.cpp.
#include "equivalence/equivalence.h"

#include <gtest/gtest.h>

#include "check/check.h"
#include "core/testing/gemm.h"
#include "core/testing/mutate.h"

namespace tessera::equivalence {
namespace {

using core::testing::Epilogue;

Answer compared(const core::Kernel& k, const Effort& effort = {}) {
  const auto means = check::means_of(k);
  const check::Report report = check::check(k, {}, *means);
  return compare(k, means->value(), report.sizes, effort);
}

core::testing::GemmShape shape(Epilogue e) {
  return {.bm = 64, .bn = 64, .bk = 16, .stages = 2, .epilogue = e};
}

TEST(Equivalence, ProductsAreWhatTheyMean) {
  for (const Epilogue e : {Epilogue::relu, Epilogue::residual}) {
    const Answer a = compared(*core::testing::gemm(shape(e)));
    EXPECT_EQ(a.verdict, Verdict::equal) << to_text(a);
    EXPECT_GE(a.launches.size(), 4U);
    EXPECT_GT(a.elements, 1000);
    EXPECT_LT(a.error, 1e-6);
  }
}

TEST(Equivalence, AnotherMeaningIsDifferent) {
  core::Kernel k = *core::testing::gemm(shape(Epilogue::residual));
  const std::string right = k.means;
  const std::size_t plus = right.rfind('+');  // before the residual: relu hides what stands in it
  ASSERT_NE(plus, std::string::npos) << right;
  k.means[plus] = '-';
  const Answer a = compared(k);
  EXPECT_EQ(a.verdict, Verdict::different) << to_text(a);
  EXPECT_TRUE(a.numbers_differ);
  EXPECT_EQ(a.element, "C[0, 0]");
}

/// Edits of what is computed of results: none is the meaning, but those that change nothing.
TEST(Equivalence, EditsOfResultsAreDifferent) {
  const core::Kernel k = *core::testing::gemm(shape(Epilogue::residual));
  int different = 0;
  for (const core::testing::Mutant& m : core::testing::result_mutants(k)) {
    const Answer a = compared(m.kernel, {.launches = 2});
    different += a.verdict == Verdict::different ? 1 : 0;
  }
  EXPECT_GE(different, 5);
}

TEST(Equivalence, WithoutALaunchNothingIsSaid) {
  const Answer a = compared(*core::testing::gemm(shape(Epilogue::relu)), {.products = 1});
  EXPECT_EQ(a.verdict, Verdict::undecided);
  EXPECT_EQ(to_text(a), "equivalence: undecided: no launch is small enough");
}

}  // namespace
}  // namespace tessera::equivalence
