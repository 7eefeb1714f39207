// x // d, d >= 1.
#include <bit>

#include "term/divisor.h"
#include "term/rules.h"

namespace tessera::term {
namespace {

Term quotient(Pool& pool, const Sum& x, Term d, Term otherwise) {
  Result<Term> made = pool.make(Op::divide, {term_of(pool, x), d});
  return made ? *made : otherwise;
}

Term by_one(Pool&, Term t) {
  return t->args[1]->op == Op::constant && t->args[1]->value == 1 ? t->args[0] : t;
}

Term split_off(Pool& pool, Term t) {
  const auto d = divisor_of(t->args[1]);
  if (!d) return t;
  const Split apart = split(pool, sum_of(t->args[0]), *d, false);
  if (apart.multiple == Sum{}) return t;
  return term_of(pool, apart.multiple) + quotient(pool, apart.rest, t->args[1], t);
}

Term in_range(Pool& pool, Term t) {
  const auto q = known_quotient(pool, sum_of(t->args[0]), t->args[1]);
  return q ? pool.constant(*q) : t;
}

Term common_factor(Pool& pool, Term t) {
  const auto d = divisor_of(t->args[1]);
  if (!d) return t;
  const auto c = common(pool, sum_of(t->args[0]), *d);
  if (!c) return t;
  const Result<Term> left = term_of(pool, c->left);
  return left ? quotient(pool, c->multiple, *left, t) : t;
}

// The sum has one quotient with coefficient 1, and no other quotient.
Term nested(Pool& pool, Term t) {
  const Sum x = sum_of(t->args[0]);
  const Part* inner = nullptr;
  for (const Part& p : x.parts) {
    if (p.atom->op != Op::divide) continue;
    if (inner != nullptr || p.coefficient != 1) return t;
    inner = &p;
  }
  if (inner == nullptr) return t;
  const Term a = inner->atom->args[1];
  if ((a->op != Op::constant || t->args[1]->op != Op::constant) && x != Sum{0, {*inner}}) return t;
  if (a->op == Op::constant && t->args[1]->op == Op::constant &&
      !narrow(Wide{a->value} * t->args[1]->value))
    return t;
  std::optional<Sum> rest = add_scaled(x, Sum{0, {{inner->atom, 1}}}, -1);
  if (rest && *rest != Sum{}) rest = scale(*rest, a->value);
  if (rest) rest = add(*rest, sum_of(inner->atom->args[0]));
  return rest ? quotient(pool, *rest, simplify(a * t->args[1]), t) : t;
}

Term of_remainder(Pool& pool, Term t) {
  const Term x = t->args[0], d = t->args[1];
  if (x->op != Op::remainder || d->op != Op::constant) return t;
  std::optional<Divisor> a = divisor_of(x->args[1]);
  if (!a || a->constant % d->value != 0) return t;
  a->constant /= d->value;
  const Result<Term> left = term_of(pool, *a);
  return left ? floor_mod(floor_div(x->args[0], d), *left) : t;
}

Term of_bits(Pool& pool, Term t) {
  const Term x = t->args[0], d = t->args[1];
  const bool bits = x->op == Op::bit_xor || x->op == Op::bit_and || x->op == Op::bit_or;
  if (!bits || d->op != Op::constant || !std::has_single_bit(static_cast<uint64_t>(d->value)))
    return t;
  return pool.must(x->op, {floor_div(x->args[0], d), floor_div(x->args[1], d)});
}

constexpr Rule rules[] = {
    {"divide_by_one", "x // 1 = x", "", by_one},
    {"divide_split", "(d*q + r) // d = q + r // d", "", split_off},
    {"divide_in_range", "x // d = k",
     "k*d <= x < (k+1)*d by facts, or 0 <= x < d or -d <= x < 0 by bounds", in_range},
    {"divide_common", "(g*x + r) // (g*d) = x // d", "0 <= r < g", common_factor},
    {"divide_nested", "(x // a + y) // d = (x + a*y) // (a*d)",
     "y = 0, or a and d constants whose product fits 64 bits", nested},
    {"divide_of_remainder", "(x % (d*a)) // d = (x // d) % a", "d a constant", of_remainder},
    {"divide_of_bits", "(x ^ y) // 2**s = (x // 2**s) ^ (y // 2**s)",
     "the divisor is a power of two; so for & and |", of_bits},
};

}  // namespace

std::span<const Rule> division_rules() {
  return rules;
}

}  // namespace tessera::term
