#include "graph/digits.h"

#include <gtest/gtest.h>

namespace tessera::graph {
namespace {

using Sizes = std::vector<int64_t>;

DigitLayout layout(const Sizes& shape, const Sizes& strides) {
  return DigitLayout::of({.base = ValueId(0U), .shape = shape, .strides = strides, .views = {}});
}

TEST(DigitLayout, MergedDimsComeApartAgain) {
  // [l, b, h, d] of [b, l, 3, h, d] memory, as an encoder layer's heads: (b, h) are no one stride.
  const auto apart = layout({16, 8, 4, 32}, {384, 6144, 32, 1});
  const auto merged = apart.reshaped({16, 32, 32});
  ASSERT_TRUE(merged);
  EXPECT_EQ(merged->shape(), (Sizes{16, 32, 32}));
  EXPECT_FALSE(merged->strides());
  const auto again = merged->reshaped({16, 8, 4, 32});
  ASSERT_TRUE(again && again->strides());
  EXPECT_EQ(*again->strides(), (Sizes{384, 6144, 32, 1}));
  // Cut elsewhere: b in two.
  EXPECT_FALSE(merged->reshaped({16, 2, 16, 32})->strides());
}

TEST(DigitLayout, WhatLiesInOneIsOneStride) {
  EXPECT_EQ(*layout({4, 6}, {6, 1}).reshaped({24})->strides(), (Sizes{1}));
  EXPECT_EQ(*layout({24}, {2}).reshaped({2, 3, 4})->strides(), (Sizes{24, 8, 2}));
  EXPECT_EQ(*layout({4, 1, 6}, {6, 77, 1}).reshaped({1, 24})->strides(), (Sizes{0, 1}));
  EXPECT_EQ(*layout({4, 6}, {0, 0}).reshaped({24})->strides(), (Sizes{0}));
}

TEST(DigitLayout, ADimThatEndsInsideADigitIsNone) {
  EXPECT_FALSE(layout({4, 6}, {1, 4}).reshaped({3, 8}));
  EXPECT_FALSE(layout({4, 6}, {1, 4}).reshaped({5, 5}));
  EXPECT_FALSE(layout({4, 6}, {1, 4}).reshaped({24, 2}));
  EXPECT_FALSE(layout({4, 6}, {1, 4}).reshaped({12}));
}

}  // namespace
}  // namespace tessera::graph
