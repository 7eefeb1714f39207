// What is known of an integer without its variables: an interval and a congruence, each sharpened
// by the other.
//
// Soundness: if x agrees with `a` and y with `b`, then x + y agrees with facts_add(a, b), and so
// for every operation. Integers are those of mathematics; a bound that does not fit 64 bits is
// given up and becomes unknown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tessera::term {

using Wide = __int128;

struct Facts {
  std::optional<int64_t> lower;  // inclusive; without: unknown
  std::optional<int64_t> upper;  // inclusive; without: unknown
  int64_t modulus = 1;           // x = residue modulo this; 0: x is residue
  int64_t residue = 0;           // in [0, modulus) unless modulus is 0

  [[nodiscard]] bool holds(int64_t x) const;
  [[nodiscard]] std::optional<int64_t> constant() const;
  [[nodiscard]] bool at_least(int64_t bound) const { return lower && *lower >= bound; }
  [[nodiscard]] bool at_most(int64_t bound) const { return upper && *upper <= bound; }
  [[nodiscard]] bool within(int64_t low, int64_t high) const {
    return at_least(low) && at_most(high);
  }
  /// x is a multiple of `m`, for m >= 1.
  [[nodiscard]] bool multiple_of(int64_t m) const;
  friend bool operator==(const Facts&, const Facts&) = default;
};

/// The integer of `wide`, if it fits.
std::optional<int64_t> narrow(Wide wide);
/// Division as Python's: rounds down; the remainder is in [0, b). b >= 1.
int64_t floor_quotient(int64_t a, int64_t b);
int64_t floor_remainder(int64_t a, int64_t b);

Facts facts_constant(int64_t value);
/// Bounds are moved to the next value that the congruence allows. modulus >= 0.
Facts facts_of(std::optional<int64_t> lower, std::optional<int64_t> upper, int64_t modulus = 1,
               int64_t residue = 0);

Facts facts_add(const Facts& a, const Facts& b);
Facts facts_subtract(const Facts& a, const Facts& b);
Facts facts_multiply(const Facts& a, const Facts& b);
/// The divisor is at least 1, whatever its facts say.
Facts facts_divide(const Facts& a, const Facts& b);
Facts facts_remainder(const Facts& a, const Facts& b);
Facts facts_xor(const Facts& a, const Facts& b);
Facts facts_and(const Facts& a, const Facts& b);
Facts facts_or(const Facts& a, const Facts& b);
/// a * 2^b and a // 2^b for b in [0, 62].
Facts facts_shift_left(const Facts& a, const Facts& b);
Facts facts_shift_right(const Facts& a, const Facts& b);
Facts facts_min(const Facts& a, const Facts& b);
Facts facts_max(const Facts& a, const Facts& b);
/// What holds of both.
Facts facts_join(const Facts& a, const Facts& b);

/// `[0, 31]`, `[0, ?], 0 mod 64`, `5`.
std::string to_string(const Facts& f);

}  // namespace tessera::term
