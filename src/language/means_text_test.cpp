#include "language/means_text.h"

#include <gtest/gtest.h>

namespace tessera::language {
namespace {

TEST(LanguageMeans, IndicesOfDimensionsThatATensorLacksAreTakenOut) {
  const std::string all = "C[b, i, j] = sum(A[b, i, k] * B[b, j, k], k) + CC[b, i, j]";
  EXPECT_EQ(without_dimensions(all, "A", {false, true, true}),
            "C[b, i, j] = sum(A[i, k] * B[b, j, k], k) + CC[b, i, j]");
  EXPECT_EQ(without_dimensions(all, "C", {false, true, true}),
            "C[i, j] = sum(A[b, i, k] * B[b, j, k], k) + CC[b, i, j]");
  EXPECT_EQ(without_dimensions("D[i] = X[f(i, j), i]", "X", {true, false}), "D[i] = X[f(i, j)]");
}

TEST(LanguageMeans, WhatHasOtherIndicesStays) {
  EXPECT_EQ(without_dimensions("C[i, j] = A[i", "C", {false, true, true}), "C[i, j] = A[i");
}

TEST(LanguageMeans, NumbersStandForConstants) {
  EXPECT_EQ(with_numbers("O[i] = D**-0.5 * sum(D[i] * KD[i], D2) if D > 0", {{"D", "64"}}),
            "O[i] = 64**-0.5 * sum(D[i] * KD[i], D2) if 64 > 0");
}

}  // namespace
}  // namespace tessera::language
