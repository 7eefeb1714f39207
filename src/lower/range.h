// Between which integers the values of a term lie in a launch: what decides its type in C++.
//
// Facts of a pool know every symbol by its declared bounds alone. A launch knows more: `blocks` is
// what the grid's term gives, and a loop that deals items out (upper = x // step, item = counter *
// step) stays below x. Items that are divided by some of the factors of x stay below the others.
#pragma once

#include <optional>
#include <unordered_map>

#include "core/deal.h"
#include "core/kernel.h"

namespace tessera::lower {

using term::Wide;

/// Both ends belong to it. What is unknown reaches to -`unbounded` or `unbounded`.
struct Range {
  static constexpr Wide unbounded = Wide{1} << 120;
  Wide low = -unbounded;
  Wide high = unbounded;
  [[nodiscard]] bool within(Wide least, Wide most) const { return low >= least && high <= most; }
  [[nodiscard]] bool fits_int() const { return within(INT32_MIN, INT32_MAX); }
  [[nodiscard]] bool fits_long() const { return within(INT64_MIN, INT64_MAX); }
  friend bool operator==(const Range&, const Range&) = default;
};

class Ranges {
 public:
  explicit Ranges(const core::Kernel& kernel) : kernel_(kernel) {}
  /// Of a number; a predicate's is [0, 1].
  const Range& of(term::Term t);

 private:
  Range computed(term::Term t);
  Range of_symbol(term::Term t);
  Range of_product(term::Term a, term::Term b);
  Range of_quotient(term::Term t, term::Term d);
  [[nodiscard]] std::optional<core::Deal> dealt(term::Term t) const;
  [[nodiscard]] std::optional<term::Term> above(term::Term t) const;
  Range of_bits(term::Term t);

  const core::Kernel& kernel_;
  std::unordered_map<const term::Node*, Range> known_;
};

}  // namespace tessera::lower
