// Random layouts for tests of laws, and how many of them are tried.
#pragma once

#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <random>

#include "base/thorough.h"
#include "layout/layout.h"

namespace tessera::testing {

inline Layout L(std::string_view text) {
  return parse_layout(text).value();
}

class Random {
 public:
  explicit Random(uint64_t seed) : bits_(seed) {}
  /// In [low, high].
  int64_t range(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(bits_() % static_cast<uint64_t>(high - low + 1));
  }
  bool one_in(int64_t n) { return range(1, n) == 1; }

  /// Strides that nest, with gaps, repeats and modes in any order: most operations are defined.
  Layout regular(int64_t most) {
    const std::vector<int64_t> extents = some_extents(most);
    std::vector<int64_t> order(extents.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
    std::shuffle(order.begin(), order.end(), bits_);
    std::vector<int64_t> strides(extents.size());
    int64_t next = 1;
    for (int64_t i : order) {
      if (one_in(6)) next *= range(2, 3);
      strides[i] = one_in(12) ? 0 : next;
      next *= extents[i];
    }
    return nested(extents, strides);
  }
  /// Any strides.
  Layout wild(int64_t most) {
    const std::vector<int64_t> extents = some_extents(most);
    std::vector<int64_t> strides;
    for (std::size_t i = 0; i < extents.size(); ++i) strides.push_back(range(0, 14));
    return nested(extents, strides);
  }
  Layout layout(int64_t most) { return one_in(3) ? wild(most) : regular(most); }

 private:
  std::vector<int64_t> some_extents(int64_t most) {
    std::vector<int64_t> out;
    int64_t size = 1;
    for (int64_t n = range(1, 4); n > 0; --n) {
      const int64_t e = range(1, one_in(4) ? 9 : 4);
      if (size * e > most) break;
      size *= e;
      out.push_back(e);
    }
    if (out.empty()) out.push_back(1);
    return out;
  }
  /// One leaf, flat, or with neighbours in a tuple of their own.
  Layout nested(const std::vector<int64_t>& extents, const std::vector<int64_t>& strides) {
    if (extents.size() == 1 && one_in(2)) return {extents[0], strides[0]};
    std::vector<Layout> modes;
    for (std::size_t i = 0; i < extents.size(); ++i) {
      const Layout leaf(extents[i], strides[i]);
      if (i > 0 && one_in(3)) {
        modes.back() = concat({modes.back(), leaf});
      } else {
        modes.push_back(leaf);
      }
    }
    return concat(modes);
  }

  std::mt19937_64 bits_;
};

/// Draws `share` thousandths of all cases (15 thousand; a million when TESSERA_TEST_ALL is set, as
/// `./dev test all` does), always the same. A law returns whether its case said anything; at least
/// a `useful`th of the cases must.
inline void for_cases(int share, int useful, const std::function<bool(Random&)>& law) {
  const int64_t all = thorough() ? 1'000'000 : 15'000;
  const int64_t cases = all * share / 1000;
  int64_t said = 0;
  for (int64_t i = 0; i < cases; ++i) {
    Random random(static_cast<uint64_t>(share) * 1'000'003 + static_cast<uint64_t>(i));
    said += law(random) ? 1 : 0;
    if (::testing::Test::HasFailure()) {
      ADD_FAILURE() << "in case " << i;
      return;
    }
  }
  EXPECT_GE(said * useful, cases) << said << " of " << cases << " cases said anything";
}

}  // namespace tessera::testing
