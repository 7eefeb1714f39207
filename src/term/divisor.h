// A divisor as constant * product of atoms, and sums taken apart by it: for the rules of // and %.
#pragma once

#include "term/sum.h"

namespace tessera::term {

struct Divisor {
  int64_t constant = 1;       // >= 1
  std::vector<Term> factors;  // none: a constant

  [[nodiscard]] bool is_constant() const { return factors.empty(); }
};

/// nullopt for a constant factor below 1 and for sums.
std::optional<Divisor> divisor_of(Term t);
/// constant * product; TS0822 where its facts do not say that it is at least 1.
Result<Term> term_of(Pool& pool, const Divisor& d);

/// s = d * multiple + rest, part by part.
struct Split {
  Sum multiple;
  Sum rest;
};

/// By a constant, coefficients are divided towards zero, or (`floor`) downwards; the constant of
/// the rest is in [0, d). Otherwise parts go over as wholes and the constant is rest.
Split split(Pool& pool, const Sum& s, const Divisor& d, bool floor);

/// s = g * multiple + rest with 0 <= rest < g and d = g * left, g > 1, multiple not constant; the
/// largest g first.
struct Common {
  Divisor left;
  Divisor g;
  Sum multiple;
  Sum rest;
};
std::optional<Common> common(Pool& pool, const Sum& s, const Divisor& d);

/// s = t and d > 0 where t's side [k*d, (k+1)*d) is known: k.
std::optional<int64_t> known_quotient(Pool& pool, const Sum& s, Term divisor);

}  // namespace tessera::term
