// Independent calls by several threads.

#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <future>
#include <vector>

#include "base/processors.h"

namespace tessera {

/// Calls f(0) to f(count - 1), each once and in any order, by as many threads as processors run for
/// this process, the calling one among them; returns when all have returned. The first exception
/// that is seen is thrown again once every thread has ended; its thread calls f no more, the others
/// go on.
template <class F>
void in_parallel(std::size_t count, const F& f) {
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) f(i);
  };
  const std::size_t threads = std::min(count, static_cast<std::size_t>(processors()));
  std::vector<std::future<void>> others;
  for (std::size_t i = 1; i < threads; ++i) others.push_back(std::async(std::launch::async, work));
  std::future<void> mine = std::async(std::launch::deferred, work);
  mine.wait();
  for (const std::future<void>& one : others) one.wait();
  mine.get();
  for (std::future<void>& one : others) one.get();
}

}  // namespace tessera
