// x % d, d >= 1.
#include <bit>

#include "term/divisor.h"
#include "term/rules.h"

namespace tessera::term {
namespace {

Term drop_multiples(Pool& pool, Term t) {
  const auto d = divisor_of(t->args[1]);
  if (!d) return t;
  const Split apart = split(pool, sum_of(t->args[0]), *d, true);
  return apart.multiple == Sum{} ? t : floor_mod(term_of(pool, apart.rest), t->args[1]);
}

Term in_range(Pool& pool, Term t) {
  const Sum x = sum_of(t->args[0]);
  const auto q = known_quotient(pool, x, t->args[1]);
  if (!q) return t;
  const std::optional<Sum> shift = scale(sum_of(t->args[1]), *q);
  const std::optional<Sum> out = shift ? add_scaled(x, *shift, -1) : std::nullopt;
  return out ? term_of(pool, *out) : t;
}

Term known(Pool& pool, Term t) {
  if (t->args[1]->op != Op::constant) return t;
  const int64_t d = t->args[1]->value;
  const Facts x = facts_of_sum(sum_of(t->args[0]));
  return x.modulus % d == 0 ? pool.constant(floor_remainder(x.residue, d)) : t;
}

Term common_factor(Pool& pool, Term t) {
  const auto d = divisor_of(t->args[1]);
  if (!d) return t;
  const auto c = common(pool, sum_of(t->args[0]), *d);
  if (!c) return t;
  const Result<Term> left = term_of(pool, c->left), g = term_of(pool, c->g);
  if (!left || !g) return t;
  return *g * floor_mod(term_of(pool, c->multiple), *left) + term_of(pool, c->rest);
}

// k * (x % a) under % d is k * x where d divides k * a.
Term nested(Pool& pool, Term t) {
  const Sum x = sum_of(t->args[0]);
  const Term d = t->args[1];
  for (const Part& p : x.parts) {
    if (p.atom->op != Op::remainder) continue;
    const Term a = p.atom->args[1];
    const Facts product = facts_multiply(a->facts, facts_constant(p.coefficient));
    if (a != d && (d->op != Op::constant || !product.multiple_of(d->value))) continue;
    std::optional<Sum> out = add_scaled(x, Sum{0, {{p.atom, 1}}}, -p.coefficient);
    if (out) out = add_scaled(*out, sum_of(p.atom->args[0]), p.coefficient);
    if (out) return floor_mod(term_of(pool, *out), d);
  }
  return t;
}

Term of_bits(Pool& pool, Term t) {
  const Term x = t->args[0], d = t->args[1];
  const bool bits = x->op == Op::bit_xor || x->op == Op::bit_and || x->op == Op::bit_or;
  if (!bits || d->op != Op::constant || !std::has_single_bit(static_cast<uint64_t>(d->value)))
    return t;
  return pool.must(x->op, {floor_mod(x->args[0], d), floor_mod(x->args[1], d)});
}

constexpr Rule rules[] = {
    {"remainder_drop", "(d*q + r) % d = r % d", "", drop_multiples},
    {"remainder_in_range", "x % d = x - k*d",
     "k*d <= x < (k+1)*d by facts, or 0 <= x < d or -d <= x < 0 by bounds", in_range},
    {"remainder_known", "x % d = r % d", "d a constant; x = r modulo a multiple of d by its facts",
     known},
    {"remainder_common", "(g*x + r) % (g*d) = g*(x % d) + r", "0 <= r < g", common_factor},
    {"remainder_nested", "(k*(x % a) + y) % d = (k*x + y) % d",
     "a is d, or d a constant that divides k*a by facts", nested},
    {"remainder_of_bits", "(x ^ y) % 2**s = (x % 2**s) ^ (y % 2**s)",
     "the divisor is a power of two; so for & and |", of_bits},
};

}  // namespace

std::span<const Rule> remainder_rules() {
  return rules;
}

}  // namespace tessera::term
