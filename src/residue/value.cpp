#include "residue/value.h"

#include <array>
#include <cmath>

#include "residue/field.h"

namespace tessera::residue {
namespace {

/// Whole numbers of this size are numbers again when sums of residues come out as them.
constexpr uint64_t small = uint64_t{1} << 16;

/// 2^e modulo both, for the exponents that a double has.
struct Doublings {
  static constexpr int64_t most = 1200;
  std::array<Pair, 2 * most + 1> at{};
  Doublings() {
    Pair up{1, 1}, down{1, 1};
    for (int64_t e = 0; e <= most; ++e) {
      at[static_cast<std::size_t>(most + e)] = up;
      at[static_cast<std::size_t>(most - e)] = down;
      up = {static_cast<uint32_t>(2ULL * up.mod_p % p), static_cast<uint32_t>(2ULL * up.mod_q % q)};
      down = {halved(down.mod_p, p), halved(down.mod_q, q)};
    }
  }
  static uint32_t halved(uint32_t n, uint64_t m) {
    return static_cast<uint32_t>(n % 2 == 0 ? n / 2 : (n + m) / 2);
  }
};

Pair lifted(double n) {
  static const Doublings doublings;
  int e = 0;
  const auto whole = static_cast<int64_t>(std::ldexp(std::frexp(n, &e), 53));
  const Pair two = doublings.at[static_cast<std::size_t>(Doublings::most + e - 53)];
  const auto by = [&](uint64_t m, uint64_t shift) {
    const int64_t rest = whole % static_cast<int64_t>(m);
    return static_cast<uint32_t>(times(rest < 0 ? rest + m : rest, shift, m));
  };
  return {by(p, two.mod_p), by(q, two.mod_q)};
}

bool finite(const Value& v) {
  return v.is_number() && std::isfinite(v.number);
}
bool both_finite(const Value& a, const Value& b) {
  return finite(a) && finite(b);
}

/// NaN of residues, whose place among the numbers is not known.
double known_number(const Value& v) {
  return v.is_number() ? v.number : std::nan("");
}

}  // namespace

Value number(double n) {
  if (std::isnan(n)) return nothing();
  Value v;
  v.number = n;
  return v;
}

Value residues(uint64_t mod_p, uint64_t mod_q) {
  if (mod_p == mod_q && mod_p < small) return number(static_cast<double>(mod_p));
  if (p - mod_p == q - mod_q && p - mod_p < small) return number(-static_cast<double>(p - mod_p));
  Value v;
  v.kind = Value::Kind::residues;
  v.mod_p = static_cast<uint32_t>(mod_p);
  v.mod_q = static_cast<uint32_t>(mod_q);
  return v;
}

bool has_pair(const Value& v) {
  return v.kind == Value::Kind::residues || finite(v);
}

Pair pair_of(const Value& v) {
  return v.is_number() ? lifted(v.number) : Pair{v.mod_p, v.mod_q};
}

Value add(const Value& a, const Value& b) {
  if (a.is_nothing() || b.is_nothing()) return nothing();
  if (both_finite(a, b)) {
    const double sum = a.number + b.number;
    const double part = sum - a.number;
    if (std::isfinite(sum) && (a.number - (sum - part)) + (b.number - part) == 0)
      return number(sum);
  } else if (!has_pair(a) || !has_pair(b)) {
    // An infinity stays one, whatever finite value comes to it.
    if (has_pair(a)) return b;
    return has_pair(b) ? a : number(a.number + b.number);
  }
  const Pair x = pair_of(a), y = pair_of(b);
  return residues((uint64_t{x.mod_p} + y.mod_p) % p, (uint64_t{x.mod_q} + y.mod_q) % q);
}

Value negative(const Value& a) {
  if (a.is_nothing()) return a;
  return a.is_number() ? number(-a.number) : residues((p - a.mod_p) % p, (q - a.mod_q) % q);
}

Value multiply(const Value& a, const Value& b) {
  if (a.is_nothing() || b.is_nothing()) return nothing();
  if (both_finite(a, b)) {
    const double product = a.number * b.number;
    if (std::isfinite(product) && std::fma(a.number, b.number, -product) == 0 &&
        (product != 0 || a.number == 0 || b.number == 0))
      return number(product);
  } else if (!has_pair(a) || !has_pair(b)) {
    return number(known_number(a) * known_number(b));
  }
  const Pair x = pair_of(a), y = pair_of(b);
  return residues(times(x.mod_p, y.mod_p, p), times(x.mod_q, y.mod_q, q));
}

Value divide(const Value& a, const Value& b) {
  if (a.is_nothing() || b.is_nothing()) return nothing();
  if (both_finite(a, b)) {
    const double quotient = a.number / b.number;
    if (b.number == 0) return number(quotient);
    if (std::isfinite(quotient) && std::fma(quotient, b.number, -a.number) == 0 &&
        (quotient != 0 || a.number == 0))
      return number(quotient);
  } else if (!has_pair(b)) {
    return has_pair(a) ? number(0) : nothing();
  } else if (!has_pair(a)) {
    return number(a.number / known_number(b));
  }
  const Pair x = pair_of(a), y = pair_of(b);
  if (y.mod_p == 0 || y.mod_q == 0) return nothing();
  return residues(times(x.mod_p, inverse(y.mod_p, p), p), times(x.mod_q, inverse(y.mod_q, q), q));
}

Value power(const Value& x) {
  constexpr double most = 1000;  // of exponents whose powers a double has
  if (x.is_nothing()) return x;
  if (x.is_number() &&
      (std::isinf(x.number) || (std::fabs(x.number) <= most && std::floor(x.number) == x.number)))
    return number(std::exp2(x.number));
  // Nothing is known of powers of powers.
  const uint64_t of_p = raised(2, pair_of(x).mod_q, p);
  return residues(of_p, mixed(of_p) % q);
}

bool same(const Value& a, const Value& b) {
  if (a.is_nothing() || b.is_nothing()) return false;
  if (a.is_number() && b.is_number()) return a.number == b.number;
  if (!has_pair(a) || !has_pair(b)) return false;
  return pair_of(a).mod_p == pair_of(b).mod_p;
}

}  // namespace tessera::residue
