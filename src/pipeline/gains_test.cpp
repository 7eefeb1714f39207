#include "pipeline/gains.h"

#include <gtest/gtest.h>

#include "pipeline/testing/evaluated.h"

namespace tessera::pipeline {
namespace {

using testing::Evaluated;

TEST(Standing, WithoutKernelsTheBarIsTheOpsOneByOne) {
  Evaluated e;
  const auto timed = e.work(0, 1);
  const auto estimated = e.work(2, 3);
  e.eager(timed, 3);
  EXPECT_DOUBLE_EQ(e.standing().bar(timed), 3);
  EXPECT_DOUBLE_EQ(e.standing().bar(estimated), 2);
  EXPECT_DOUBLE_EQ(e.standing().saved_ms(timed), 0);
}

TEST(Standing, WhatOthersSaveWouldBeLost) {
  Evaluated e;
  const auto whole = e.work(0, 1);
  const auto part = e.work(1, 1);
  e.eager(whole, 2);
  e.eager(part, 1);
  e.synthesized(whole, 1.5);
  EXPECT_DOUBLE_EQ(e.standing().bar(part), 0.5);
  EXPECT_DOUBLE_EQ(e.standing().bar(whole), 2);  // its own kernel is no obstacle
  EXPECT_DOUBLE_EQ(e.standing().saved_ms(whole), 0.5);
  e.options.effort = "max";
  EXPECT_DOUBLE_EQ(e.standing().bar(part), 1);
}

TEST(Standing, KernelsOfPartsStandAgainstTheWhole) {
  Evaluated e;
  const auto first = e.work(0, 0);
  const auto second = e.work(1, 1);
  const auto both = e.work(0, 1);
  e.eager(first, 1);
  e.synthesized(first, 0.2);
  e.eager(second, 1);
  e.synthesized(second, 1.1);  // loses, so it is not placed
  e.eager(both, 2);
  EXPECT_DOUBLE_EQ(e.standing().bar(both), 1.2);
  e.synthesized(second, 0.8);
  EXPECT_DOUBLE_EQ(e.standing().bar(both), 1.0);
}

TEST(Standing, AWholeTakesAtLeastWhatItsPartTook) {
  Evaluated e;
  const auto part = e.work(0, 1);
  const auto whole = e.work(0, 3);
  e.eager(part, 6);
  e.synthesized(part, 2);
  e.eager(whole, 5);  // at a quieter moment
  EXPECT_DOUBLE_EQ(e.standing().bar(whole), 2);
}

TEST(Standing, TheOpsThemselvesSaveNothingButNoise) {
  Evaluated e;
  const auto whole = e.work(0, 1);
  const auto part = e.work(1, 1);
  e.eager(whole, 2);
  e.aten(whole, 1.5);
  e.library(whole, 2.1);
  EXPECT_DOUBLE_EQ(e.standing().bar(part), 1);
  e.library(whole, 1.9);
  EXPECT_DOUBLE_EQ(e.standing().bar(part), 0.9);
}

TEST(Standing, OnlyWhatMayBePlacedCounts) {
  Evaluated e;
  const auto whole = e.work(0, 1);
  const auto part = e.work(1, 1);
  e.eager(whole, 2);
  e.library(whole, 1.5);
  e.options.only_kind = "synthesized";
  EXPECT_DOUBLE_EQ(e.standing().bar(part), 1);
  e.synthesized(whole, 1.8);
  EXPECT_DOUBLE_EQ(e.standing().bar(part), 0.8);
}

TEST(Standing, CountsThePlacesThatGain) {
  Evaluated e;
  const auto twice = e.work(0, 0);
  e.also_at(twice, 1);
  const auto other = e.work(1, 2);
  e.eager(twice, 1);
  e.eager(other, 2);
  e.synthesized(other, 1.2);
  const Standing now = e.standing();
  EXPECT_DOUBLE_EQ(now.bar(twice), 1);
  EXPECT_EQ(now.places_above(twice, 0.9), 1);
  EXPECT_EQ(now.places_above(twice, 0.1), 2);
}

TEST(ChooseKernels, AnOrderFromTheModulesRunChangesNothing) {
  Evaluated e;
  const auto whole = e.work(0, 1);
  const auto part = e.work(1, 1);
  e.eager(whole, 2);
  e.library(whole, 2.05);  // the fastest within the module
  e.synthesized(whole, 1.95);
  ASSERT_EQ(choose_kernels(e.s).choice.chosen.size(), 1U);
  EXPECT_EQ(placeable(e.s, e.s.work[whole])->candidate.kind, kernel::Kind::library);
  EXPECT_DOUBLE_EQ(e.standing().bar(part), 0.95);
  e.options.only_kind = "library";
  EXPECT_TRUE(choose_kernels(e.s).choice.chosen.empty());
}

TEST(ChooseKernels, NoKernelGainsByTheTimeOfAPart) {
  Evaluated e;
  const auto part = e.work(0, 1);
  const auto whole = e.work(0, 3);
  e.eager(part, 6);
  e.eager(whole, 5);  // at a quieter moment
  e.synthesized(whole, 5.1);
  EXPECT_TRUE(choose_kernels(e.s).choice.chosen.empty());
  e.synthesized(whole, 4.9);
  EXPECT_EQ(choose_kernels(e.s).choice.chosen.size(), 1U);
}

TEST(ChooseKernels, TheOpsThemselvesAreNoKernel) {
  Evaluated e;
  const auto part = e.work(0, 1);
  const auto whole = e.work(0, 3);
  e.eager(part, 6);
  e.eager(whole, 5);
  e.aten(whole, 5);
  e.synthesized(whole, 4.99);  // faster by noise alone, which is why it comes second
  EXPECT_TRUE(choose_kernels(e.s).choice.chosen.empty());
}

}  // namespace
}  // namespace tessera::pipeline
