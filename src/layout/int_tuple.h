// A nested tuple of integers, the shape or the stride of a layout: 4, (2,3), (4,(2,(3,5))).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "diag/result.h"

namespace tessera {

struct IntTuple {
  bool is_leaf = true;
  int64_t value = 0;            // of a leaf
  std::vector<IntTuple> items;  // of a tuple; may be empty: () has size 1

  IntTuple() = default;
  IntTuple(int64_t v) : value(v) {}  // NOLINT(google-explicit-constructor): 4 is the leaf 4
  static IntTuple tuple(std::vector<IntTuple> items) {
    IntTuple t;
    t.is_leaf = false;
    t.items = std::move(items);
    return t;
  }
  static IntTuple flat(const std::vector<int64_t>& values) {
    return tuple({values.begin(), values.end()});
  }

  /// A leaf has rank 1 and is its own mode 0.
  [[nodiscard]] int rank() const { return is_leaf ? 1 : static_cast<int>(items.size()); }
  [[nodiscard]] const IntTuple& mode(int i) const { return is_leaf ? *this : items[i]; }
  friend bool operator==(const IntTuple&, const IntTuple&) = default;
};

int64_t product(const IntTuple& t);
/// The leaves from left to right.
std::vector<int64_t> flatten(const IntTuple& t);
/// Same nesting, values aside.
bool congruent(const IntTuple& a, const IntTuple& b);
std::string to_string(const IntTuple& t);
/// Reads one tuple from the front of `text` and removes it.
Result<IntTuple> parse_int_tuple(std::string_view& text);

}  // namespace tessera
