#include "term/facts.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <limits>
#include <numeric>

namespace tessera::term {
namespace {

constexpr int64_t least = std::numeric_limits<int64_t>::min();
constexpr int64_t most = std::numeric_limits<int64_t>::max();

using Bound = std::optional<int64_t>;

// A modulus too large to be kept says nothing.
Facts congruent(Bound lower, Bound upper, Wide modulus, Wide residue) {
  if (modulus == 0) {
    const Bound value = narrow(residue);
    return value ? facts_constant(*value) : Facts{};
  }
  if (modulus > most / 2) return facts_of(lower, upper);
  Wide r = residue % modulus;
  if (r < 0) r += modulus;
  return facts_of(lower, upper, static_cast<int64_t>(modulus), static_cast<int64_t>(r));
}

Wide greatest_divisor(Wide a, Wide b) {
  if (a < 0) a = -a;
  if (b < 0) b = -b;
  while (b != 0) {
    const Wide rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

Bound sum(Bound a, Bound b) {
  return a && b ? narrow(Wide{*a} + *b) : std::nullopt;
}

Bound smaller(Bound a, Bound b) {
  return a && b ? Bound(std::min(*a, *b)) : std::nullopt;
}

Bound larger(Bound a, Bound b) {
  return a && b ? Bound(std::max(*a, *b)) : std::nullopt;
}

// How many low bits of x are known: those of its residue.
int known_low_bits(const Facts& f) {
  return f.modulus == 0 ? 62 : std::countr_zero(static_cast<uint64_t>(f.modulus));
}

// All ones up to the highest bit of `value`.
int64_t ones_to(int64_t value) {
  const int width = std::bit_width(static_cast<uint64_t>(value));
  return width >= 63 ? most : (int64_t{1} << width) - 1;
}

template <class Operation>
Facts bitwise(const Facts& a, const Facts& b, Bound lower, Bound upper, Operation operation) {
  const int known = std::min({known_low_bits(a), known_low_bits(b), 62});
  const int64_t modulus = int64_t{1} << known;
  return facts_of(lower, upper, modulus, floor_remainder(operation(a.residue, b.residue), modulus));
}

}  // namespace

std::optional<int64_t> narrow(Wide wide) {
  if (wide < least || wide > most) return std::nullopt;
  return static_cast<int64_t>(wide);
}

int64_t floor_quotient(int64_t a, int64_t b) {
  const int64_t q = a / b;
  return a % b < 0 ? q - 1 : q;
}

int64_t floor_remainder(int64_t a, int64_t b) {
  const int64_t r = a % b;
  return r < 0 ? r + b : r;
}

bool Facts::holds(int64_t x) const {
  if ((lower && x < *lower) || (upper && x > *upper)) return false;
  return modulus == 0 ? x == residue : floor_remainder(x, modulus) == residue;
}

std::optional<int64_t> Facts::constant() const {
  return modulus == 0 ? std::optional(residue) : std::nullopt;
}

bool Facts::multiple_of(int64_t m) const {
  return modulus % m == 0 && residue % m == 0;
}

Facts facts_constant(int64_t value) {
  return {value, value, 0, value};
}

Facts facts_of(Bound lower, Bound upper, int64_t modulus, int64_t residue) {
  if (modulus == 0) return facts_constant(residue);
  residue = floor_remainder(residue, modulus);
  if (lower)
    lower =
        narrow(Wide{*lower} + floor_remainder(residue - floor_remainder(*lower, modulus), modulus));
  if (upper)
    upper =
        narrow(Wide{*upper} - floor_remainder(floor_remainder(*upper, modulus) - residue, modulus));
  if (lower && upper && *lower == *upper) return facts_constant(*lower);
  return {lower, upper, modulus, residue};
}

Facts facts_add(const Facts& a, const Facts& b) {
  return congruent(sum(a.lower, b.lower), sum(a.upper, b.upper),
                   greatest_divisor(a.modulus, b.modulus), Wide{a.residue} + b.residue);
}

Facts facts_subtract(const Facts& a, const Facts& b) {
  return facts_add(a, facts_multiply(b, facts_constant(-1)));
}

Facts facts_multiply(const Facts& a, const Facts& b) {
  Bound lower, upper;
  const auto corner = [](Bound x, Bound y) { return x && y ? narrow(Wide{*x} * *y) : Bound(); };
  const Bound corners[] = {corner(a.lower, b.lower), corner(a.lower, b.upper),
                           corner(a.upper, b.lower), corner(a.upper, b.upper)};
  if (std::all_of(std::begin(corners), std::end(corners), [](Bound c) { return c.has_value(); })) {
    lower = *std::min_element(std::begin(corners), std::end(corners));
    upper = *std::max_element(std::begin(corners), std::end(corners));
  } else if (a.at_least(0) && b.at_least(0)) {
    lower = corner(a.lower, b.lower);
    if (!lower) lower = 0;
    upper = corner(a.upper, b.upper);
  } else if (const auto c = b.constant() ? b.constant() : a.constant()) {
    const Facts& x = b.constant() ? a : b;
    if (*c == 0) return facts_constant(0);
    lower = corner(*c > 0 ? x.lower : x.upper, c);
    upper = corner(*c > 0 ? x.upper : x.lower, c);
  }
  const Wide ma = a.modulus, mb = b.modulus;
  if (ma > most / 2 || mb > most / 2) return facts_of(lower, upper);
  const Wide modulus = greatest_divisor(greatest_divisor(ma * mb, ma * b.residue), mb * a.residue);
  return congruent(lower, upper, modulus, Wide{a.residue} * b.residue);
}

Facts facts_divide(const Facts& a, const Facts& b) {
  const int64_t small = b.at_least(1) ? *b.lower : 1;
  Bound lower, upper;
  if (a.lower) {
    if (*a.lower < 0)
      lower = floor_quotient(*a.lower, small);
    else
      lower = b.upper && *b.upper >= 1 ? floor_quotient(*a.lower, *b.upper) : 0;
  }
  if (a.upper) {
    if (*a.upper >= 0)
      upper = floor_quotient(*a.upper, small);
    else
      upper = b.upper && *b.upper >= 1 ? floor_quotient(*a.upper, *b.upper) : -1;
  }
  if (const auto c = b.constant(); c && *c >= 1 && a.modulus % *c == 0)
    return congruent(lower, upper, a.modulus / *c, floor_quotient(a.residue, *c));
  return facts_of(lower, upper);
}

Facts facts_remainder(const Facts& a, const Facts& b) {
  Bound lower = 0, upper = b.upper ? narrow(Wide{*b.upper} - 1) : std::nullopt;
  if (a.at_least(0) && a.upper && (!upper || *a.upper < *upper)) upper = a.upper;
  const auto c = b.constant();
  if (!c || *c < 1) return facts_of(lower, upper);
  if (a.lower && a.upper && floor_quotient(*a.lower, *c) == floor_quotient(*a.upper, *c)) {
    lower = floor_remainder(*a.lower, *c);
    upper = floor_remainder(*a.upper, *c);
  }
  const int64_t modulus = std::gcd(a.modulus, *c);
  if (modulus == *c) return facts_constant(floor_remainder(a.residue, *c));
  return facts_of(lower, upper, modulus, floor_remainder(a.residue, modulus));
}

Facts facts_xor(const Facts& a, const Facts& b) {
  Bound lower, upper;
  if (a.at_least(0) && b.at_least(0)) {
    lower = 0;
    if (a.upper && b.upper) upper = ones_to(*a.upper | *b.upper);
  }
  return bitwise(a, b, lower, upper, [](int64_t x, int64_t y) { return x ^ y; });
}

Facts facts_and(const Facts& a, const Facts& b) {
  Bound lower, upper;
  if (a.at_least(0) || b.at_least(0)) {
    lower = 0;
    if (a.at_least(0)) upper = a.upper;
    if (b.at_least(0) && b.upper && (!upper || *b.upper < *upper)) upper = b.upper;
  }
  Facts out = bitwise(a, b, lower, upper, [](int64_t x, int64_t y) { return x & y; });
  for (const Facts& f : {a, b}) {  // zeros at the end of one are zeros of the result
    const uint64_t tail = static_cast<uint64_t>(f.modulus) | static_cast<uint64_t>(f.residue);
    const int zeros = tail == 0 ? 62 : std::min(std::countr_zero(tail), 62);
    const int64_t modulus = int64_t{1} << zeros;
    if (out.modulus != 0 && modulus > out.modulus) out = facts_of(lower, upper, modulus, 0);
  }
  return out;
}

Facts facts_or(const Facts& a, const Facts& b) {
  Bound lower, upper;
  if (a.at_least(0) && b.at_least(0)) {
    lower = larger(a.lower, b.lower);
    if (a.upper && b.upper) upper = ones_to(*a.upper | *b.upper);
  }
  return bitwise(a, b, lower, upper, [](int64_t x, int64_t y) { return x | y; });
}

namespace {
Facts power_of_two(const Facts& exponent) {
  const int64_t low = std::clamp<int64_t>(exponent.lower.value_or(0), 0, 62);
  const int64_t high = std::clamp<int64_t>(exponent.upper.value_or(62), low, 62);
  return facts_of(int64_t{1} << low, int64_t{1} << high, int64_t{1} << low, 0);
}
}  // namespace

Facts facts_shift_left(const Facts& a, const Facts& b) {
  return facts_multiply(a, power_of_two(b));
}

Facts facts_shift_right(const Facts& a, const Facts& b) {
  return facts_divide(a, power_of_two(b));
}

Facts facts_join(const Facts& a, const Facts& b) {
  const Wide apart = Wide{a.residue} - b.residue;
  return congruent(smaller(a.lower, b.lower), larger(a.upper, b.upper),
                   greatest_divisor(greatest_divisor(a.modulus, b.modulus), apart), a.residue);
}

Facts facts_min(const Facts& a, const Facts& b) {
  const Facts both = facts_join(a, b);
  Bound upper = a.upper ? (b.upper ? smaller(a.upper, b.upper) : a.upper) : b.upper;
  return facts_of(both.lower, upper, both.modulus, both.residue);
}

Facts facts_max(const Facts& a, const Facts& b) {
  const Facts both = facts_join(a, b);
  Bound lower = a.lower ? (b.lower ? larger(a.lower, b.lower) : a.lower) : b.lower;
  return facts_of(lower, both.upper, both.modulus, both.residue);
}

std::string to_string(const Facts& f) {
  if (const auto c = f.constant()) return fmt::format("{}", *c);
  const auto bound = [](Bound b) { return b ? fmt::format("{}", *b) : std::string("?"); };
  std::string out = fmt::format("[{}, {}]", bound(f.lower), bound(f.upper));
  if (f.modulus > 1) out += fmt::format(", {} mod {}", f.residue, f.modulus);
  return out;
}

}  // namespace tessera::term
