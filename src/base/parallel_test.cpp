#include "base/parallel.h"

#include <chrono>
#include <gtest/gtest.h>
#include <stdexcept>
#include <thread>

namespace tessera {
namespace {

TEST(Parallel, EveryIndexIsTakenOnce) {
  for (const std::size_t count : {0u, 1u, 2u, 1000u}) {
    std::vector<std::atomic<int>> taken(count);
    in_parallel(count, [&](std::size_t i) { ++taken.at(i); });
    for (const std::atomic<int>& one : taken) EXPECT_EQ(one, 1);
  }
}

TEST(Parallel, WhatACallThrowsIsThrownWhenAllThreadsHaveEnded) {
  std::atomic<int> inside{0};
  const auto f = [&](std::size_t i) {
    ++inside;
    if (i == 3) {
      --inside;
      throw std::runtime_error("of the third");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    --inside;
  };
  EXPECT_THROW(in_parallel(100, f), std::runtime_error);
  EXPECT_EQ(inside, 0);
}

}  // namespace
}  // namespace tessera
