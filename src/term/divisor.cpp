#include "term/divisor.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "term/bound.h"

namespace tessera::term {
namespace {

// factors without those of `remove`, once each; nullopt if one is missing.
std::optional<std::vector<Term>> without(std::vector<Term> factors,
                                         const std::vector<Term>& remove) {
  for (Term f : remove) {
    const auto it = std::find(factors.begin(), factors.end(), f);
    if (it == factors.end()) return std::nullopt;
    factors.erase(it);
  }
  return factors;
}

void push(Sum& s, Term atom, int64_t coefficient) {
  if (coefficient == 0) return;
  if (atom->op == Op::constant)
    s.constant = *narrow(Wide{s.constant} + coefficient);
  else
    s.parts.push_back({atom, coefficient});
}

Sum ordered(Sum s) {
  std::sort(s.parts.begin(), s.parts.end(),
            [](const Part& a, const Part& b) { return a.atom->id < b.atom->id; });
  return s;
}

bool in_range(Pool& pool, const Sum& s, Term below) {
  return proves_at_least(pool, s, 0) && proves_less(pool, s, sum_of(below));
}

std::optional<Common> by_constant(const Sum& s, const Divisor& d) {
  std::set<int64_t, std::greater<>> candidates;
  for (const Part& p : s.parts)
    if (const int64_t g = std::gcd(p.coefficient, d.constant); g > 1) candidates.insert(g);
  for (const int64_t g : candidates) {
    Sum multiple, rest;
    for (const Part& p : s.parts) {
      if (p.coefficient % g == 0)
        multiple.parts.push_back({p.atom, p.coefficient / g});
      else
        rest.parts.push_back(p);
    }
    multiple.constant = floor_quotient(s.constant, g);
    rest.constant = floor_remainder(s.constant, g);
    if (facts_of_sum(rest).within(0, g - 1))
      return Common{{d.constant / g, d.factors}, {g, {}}, std::move(multiple), std::move(rest)};
  }
  return std::nullopt;
}

std::optional<Common> by_factors(Pool& pool, const Sum& s, const Divisor& d) {
  const Divisor g{1, d.factors};
  const Result<Term> bound = term_of(pool, g);
  if (!bound) return std::nullopt;
  Split apart = split(pool, s, g, false);
  if (apart.multiple.is_constant() || !in_range(pool, apart.rest, *bound)) return std::nullopt;
  return Common{{d.constant, {}}, g, std::move(apart.multiple), std::move(apart.rest)};
}

}  // namespace

std::optional<Divisor> divisor_of(Term t) {
  const Sum s = sum_of(t);
  if (s.is_constant())
    return s.constant >= 1 ? std::optional(Divisor{s.constant, {}}) : std::nullopt;
  if (s.constant != 0 || s.parts.size() != 1 || s.parts[0].coefficient < 1) return std::nullopt;
  return Divisor{s.parts[0].coefficient, factors_of(s.parts[0].atom)};
}

Result<Term> term_of(Pool& pool, const Divisor& d) {
  const Term product = product_of(pool, d.factors);
  const Term out = d.is_constant()   ? pool.constant(d.constant)
                   : d.constant == 1 ? product
                                     : pool.constant(d.constant) * product;
  if (!out->facts.at_least(1))
    return error(fail(bad_operand, "the divisor `{}` may be below 1", to_string(out)));
  return out;
}

Split split(Pool& pool, const Sum& s, const Divisor& d, bool floor) {
  Split out;
  if (d.is_constant()) {
    for (const Part& p : s.parts) {
      const int64_t q =
          floor ? floor_quotient(p.coefficient, d.constant) : p.coefficient / d.constant;
      push(out.multiple, p.atom, q);
      push(out.rest, p.atom, p.coefficient - q * d.constant);
    }
    out.multiple.constant = floor_quotient(s.constant, d.constant);
    out.rest.constant = floor_remainder(s.constant, d.constant);
    return out;
  }
  out.rest.constant = s.constant;
  for (const Part& p : s.parts) {
    const auto left =
        p.coefficient % d.constant == 0 ? without(factors_of(p.atom), d.factors) : std::nullopt;
    if (left)
      push(out.multiple, product_of(pool, *left), p.coefficient / d.constant);
    else
      push(out.rest, p.atom, p.coefficient);
  }
  out.multiple = ordered(std::move(out.multiple));
  return out;
}

std::optional<Common> common(Pool& pool, const Sum& s, const Divisor& d) {
  if (auto c = by_constant(s, d)) return c;
  return d.is_constant() ? std::nullopt : by_factors(pool, s, d);
}

std::optional<int64_t> known_quotient(Pool& pool, const Sum& s, Term divisor) {
  const Facts f = facts_of_sum(s);
  if (divisor->op == Op::constant && f.lower && f.upper) {
    const int64_t q = floor_quotient(*f.lower, divisor->value);
    if (q == floor_quotient(*f.upper, divisor->value)) return q;
  }
  if (in_range(pool, s, divisor)) return 0;
  if (proves_at_most(pool, s, -1) && !s.is_constant()) {
    const std::optional<Sum> shifted = add(s, sum_of(divisor));
    if (shifted && proves_at_least(pool, *shifted, 0)) return -1;
  }
  return std::nullopt;
}

}  // namespace tessera::term
