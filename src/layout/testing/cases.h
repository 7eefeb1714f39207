// Random layouts for tests of laws, and how many of them are tried.
#pragma once

#include <functional>
#include <gtest/gtest.h>
#include <random>
#include <set>

#include "base/thorough.h"
#include "layout/swizzled_layout.h"

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
  /// In [0, 2^bits).
  uint64_t word(int bits) { return bits_() >> (64 - bits); }
  bool one_in(int64_t n) { return range(1, n) == 1; }
  template <class T>
  const T& pick(const std::vector<T>& of) {
    return of[range(0, static_cast<int64_t>(of.size()) - 1)];
  }

  /// Strides that nest, with gaps, repeats and modes in any order: most operations are defined.
  Layout regular(int64_t most, bool powers = false) {
    const std::vector<int64_t> extents = some_extents(most, powers);
    std::vector<int64_t> order(extents.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
    std::shuffle(order.begin(), order.end(), bits_);
    std::vector<int64_t> strides(extents.size());
    int64_t next = 1;
    for (int64_t i : order) {
      if (one_in(6)) next *= powers ? 2 : range(2, 3);
      strides[i] = one_in(12) ? 0 : next;
      next *= extents[i];
    }
    return nested(extents, strides);
  }
  /// Any strides.
  Layout wild(int64_t most) {
    const std::vector<int64_t> extents = some_extents(most, false);
    std::vector<int64_t> strides;
    for (std::size_t i = 0; i < extents.size(); ++i) strides.push_back(range(0, 14));
    return nested(extents, strides);
  }
  Layout layout(int64_t most) { return one_in(3) ? wild(most) : regular(most); }
  /// Each element once: a permutation of modes.
  Layout bijective(int64_t most) {
    while (true) {
      const Layout l = regular(most);
      std::set<int64_t> offsets;
      for (int64_t i = 0; i < l.size(); ++i) offsets.insert(l(i));
      if (l.cosize() == l.size() && static_cast<int64_t>(offsets.size()) == l.size()) return l;
    }
  }
  /// e:1 or a regular layout for a mode of `extent`, most often one that divides it.
  Layout tile(int64_t extent) {
    std::vector<int64_t> divisors;
    for (int64_t d = 1; d <= extent; ++d)
      if (extent % d == 0) divisors.push_back(d);
    if (one_in(4)) return regular(std::max<int64_t>(extent, 1));
    const int64_t e = pick(divisors);
    return {e, one_in(2) ? 1 : pick(divisors)};
  }
  /// Small enough that layouts of some hundred elements are moved.
  Swizzle swizzle() {
    const int b = static_cast<int>(range(0, 3));
    return {b, static_cast<int>(range(0, 3)), b + static_cast<int>(range(0, 1))};
  }
  SwizzledLayout swizzled(int64_t most, bool powers = false) {
    const int64_t offset = one_in(2) ? 0 : range(0, 40);
    return {swizzle(), offset, powers ? regular(most, true) : layout(most)};
  }

 private:
  std::vector<int64_t> some_extents(int64_t most, bool powers) {
    std::vector<int64_t> out;
    int64_t size = 1;
    for (int64_t n = range(1, 4); n > 0; --n) {
      const int64_t e = powers ? int64_t{1} << range(0, 3) : range(1, one_in(4) ? 9 : 4);
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
