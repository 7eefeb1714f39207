// Sums: like parts are collected, and digits of one number are put together again.
#include <algorithm>
#include <limits>

#include "term/rules.h"
#include "term/sum.h"

namespace tessera::term {
namespace {

Term collect(Pool& pool, Term t) {
  return term_of(pool, sum_of(t));
}

bool has_atom_of(const Sum& s, const Sum& of) {
  return std::any_of(of.parts.begin(), of.parts.end(), [&](const Part& p) {
    return std::any_of(s.parts.begin(), s.parts.end(),
                       [&](const Part& q) { return q.atom == p.atom; });
  });
}

// `s` with k * (y - a * (y // a)) instead of k * (y % a), if the quotient goes away by that, or a
// part does.
std::optional<Sum> without_remainder(Pool& pool, const Sum& s, const Part& p) {
  const Term y = p.atom->args[0], a = p.atom->args[1];
  Result<Term> quotient = pool.make(Op::divide, {y, a});
  if (!quotient) return std::nullopt;
  const Sum q = sum_of(simplify(*quotient) * a);
  std::optional<Sum> out = add_scaled(s, Sum{0, {{p.atom, 1}}}, -p.coefficient);
  if (out) out = add_scaled(*out, sum_of(y), p.coefficient);
  if (out) out = add_scaled(*out, q, -p.coefficient);
  if (!out || weight(*out) >= weight(s)) return std::nullopt;
  if (out->parts.size() >= s.parts.size() && has_atom_of(*out, q)) return std::nullopt;
  return out;
}

Term merge_whole(Pool& pool, Term t) {
  const Sum s = sum_of(t);
  if (s.parts.size() < 2) return t;
  for (const Part& p : s.parts) {
    if (p.atom->op != Op::remainder) continue;
    if (const std::optional<Sum> merged = without_remainder(pool, s, p))
      return term_of(pool, *merged);
  }
  return t;
}

// k*y - k*a*(y // a), where y is more than the quotient alone.
Term make_remainder(Pool& pool, Term t) {
  const Sum s = sum_of(t);
  for (const Part& p : s.parts) {
    if (p.atom->op != Op::divide || p.atom->args[1]->op != Op::constant) continue;
    const int64_t a = p.atom->args[1]->value;
    if (p.coefficient % a != 0 || p.coefficient == std::numeric_limits<int64_t>::min()) continue;
    const int64_t k = -(p.coefficient / a);
    std::optional<Sum> out = add_scaled(s, Sum{0, {{p.atom, 1}}}, -p.coefficient);
    if (out) out = add_scaled(*out, sum_of(p.atom->args[0]), -k);
    const Term remainder = floor_mod(p.atom->args[0], a);
    if (out) out = add_scaled(*out, Sum{0, {{remainder, 1}}}, k);
    if (out && weight(*out) < weight(s) && out->parts.size() < s.parts.size())
      return term_of(pool, *out);
  }
  return t;
}

bool is_constant_remainder(Term t) {
  return t->op == Op::remainder && t->args[1]->op == Op::constant;
}

// k * (y % a) + k*a * (z % b) with z = y // a.
Term merge_neighbours(Pool& pool, Term t) {
  const Sum s = sum_of(t);
  for (const Part& low : s.parts) {
    if (!is_constant_remainder(low.atom)) continue;
    const Term y = low.atom->args[0];
    const int64_t a = low.atom->args[1]->value;
    for (const Part& high : s.parts) {
      if (!is_constant_remainder(high.atom) || Wide{low.coefficient} * a != high.coefficient)
        continue;
      const auto product = narrow(Wide{a} * high.atom->args[1]->value);
      if (!product || simplify(floor_div(y, a)) != high.atom->args[0]) continue;
      std::optional<Sum> out = add_scaled(s, Sum{0, {{low.atom, 1}}}, -low.coefficient);
      if (out) out = add_scaled(*out, Sum{0, {{high.atom, 1}}}, -high.coefficient);
      if (!out) continue;
      return term_of(pool, *out) + floor_mod(y, *product) * low.coefficient;
    }
  }
  return t;
}

// k*a * (y // a) where y = r modulo a.
Term exact_quotient(Pool& pool, Term t) {
  const Sum s = sum_of(t);
  for (const Part& p : s.parts) {
    if (p.atom->op != Op::divide || p.atom->args[1]->op != Op::constant) continue;
    const int64_t a = p.atom->args[1]->value;
    const Facts& y = p.atom->args[0]->facts;
    if (p.coefficient % a != 0 || y.modulus % a != 0) continue;
    std::optional<Sum> whole =
        add(sum_of(p.atom->args[0]), constant_sum(-floor_remainder(y.residue, a)));
    if (whole) whole = scale(*whole, p.coefficient / a);
    if (whole) whole = add(*whole, s);
    if (whole) whole = add_scaled(*whole, Sum{0, {{p.atom, 1}}}, -p.coefficient);
    if (whole && weight(*whole) < weight(s)) return term_of(pool, *whole);
  }
  return t;
}

constexpr Rule rules[] = {
    {"sum_collect", "2*(x + y) - x + 3 = x + 2*y + 3",
     "no coefficient leaves 64 bits, at most 64 parts; products of sums are multiplied out",
     collect},
    {"sum_merge_whole", "k*(y % a) + k*a*(y // a) = k*y",
     "the sum has fewer nodes afterwards, and fewer parts or no y // a", merge_whole},
    {"sum_merge_digits", "k*(y % a) + k*a*((y // a) % b) = k*(y % (a*b))",
     "a, b constants; a*b fits 64 bits", merge_neighbours},
    {"sum_make_remainder", "k*y - k*a*(y // a) = k*(y % a)",
     "a a constant; the sum has fewer nodes and parts afterwards", make_remainder},
    {"sum_exact_quotient", "k*a*(y // a) = k*(y - r)", "a a constant; y = r modulo a by its facts",
     exact_quotient},
};

}  // namespace

std::span<const Rule> sum_rules() {
  return rules;
}

}  // namespace tessera::term
