// Predicates. The normal form of an order is `0 <= sum`, of an equation `sum == 0`.
#include <algorithm>
#include <limits>
#include <numeric>

#include "term/bound.h"
#include "term/rules.h"

namespace tessera::term {
namespace {

bool is_comparison(Term t) {
  return t->op >= Op::equal && t->op <= Op::less_equal;
}

// The right side minus the left.
std::optional<Sum> apart(Term t) {
  return add_scaled(sum_of(t->args[1]), sum_of(t->args[0]), -1);
}

Term decided(Pool& pool, Term t) {
  const auto d = is_comparison(t) ? apart(t) : std::nullopt;
  if (!d) return t;
  const bool less = t->op == Op::less;
  if (less || t->op == Op::less_equal) {
    if (proves_at_least(pool, *d, less ? 1 : 0)) return pool.truth(true);
    return proves_at_most(pool, *d, less ? 0 : -1) ? pool.truth(false) : t;
  }
  if (*d == Sum{}) return pool.truth(t->op == Op::equal);
  const Facts f = facts_of_sum(*d);
  const bool differ = !f.holds(0) || proves_at_least(pool, *d, 1) || proves_at_most(pool, *d, -1);
  return differ ? pool.truth(t->op == Op::not_equal) : t;
}

int64_t common_factor(const Sum& s) {
  int64_t g = 0;
  for (const Part& p : s.parts) {
    if (p.coefficient == std::numeric_limits<int64_t>::min()) return 1;
    g = std::gcd(g, p.coefficient);
  }
  return std::max<int64_t>(g, 1);
}

Sum divided(Sum s, int64_t g) {
  for (Part& p : s.parts) p.coefficient /= g;
  s.constant = floor_quotient(s.constant, g);
  return s;
}

Term order(Pool& pool, Term t) {
  if (t->op != Op::less && t->op != Op::less_equal) return t;
  auto d = apart(t);
  if (d && t->op == Op::less) d = add(*d, constant_sum(-1));
  if (!d) return t;
  return less_equal(pool.constant(0), term_of(pool, divided(*d, common_factor(*d))));
}

Term equation(Pool& pool, Term t) {
  if (t->op != Op::equal && t->op != Op::not_equal) return t;
  auto d = apart(t);
  if (!d || d->is_constant()) return t;
  const int64_t g = common_factor(*d);
  if (floor_remainder(d->constant, g) != 0) return pool.truth(t->op == Op::not_equal);
  Sum s = divided(*d, g);
  if (s.parts[0].coefficient < 0) {
    const auto negative = scale(s, -1);
    if (!negative) return t;
    s = *negative;
  }
  return pool.must(t->op, {term_of(pool, s), pool.constant(0)});
}

Term negation(Pool& pool, Term t) {
  if (t->op != Op::logical_not) return t;
  const Term p = t->args[0];
  switch (p->op) {
    case Op::truth:
      return pool.truth(p->value == 0);
    case Op::logical_not:
      return p->args[0];
    case Op::less:
      return less_equal(p->args[1], p->args[0]);
    case Op::less_equal:
      return less(p->args[1], p->args[0]);
    case Op::equal:
      return pool.must(Op::not_equal, p->args);
    case Op::not_equal:
      return pool.must(Op::equal, p->args);
    case Op::logical_and:
      return logical_or(logical_not(p->args[0]), logical_not(p->args[1]));
    case Op::logical_or:
      return logical_and(logical_not(p->args[0]), logical_not(p->args[1]));
    default:
      return t;
  }
}

std::vector<Term> operands(Op op, Term t) {
  if (t->op != op) return {t};
  std::vector<Term> out = operands(op, t->args[0]);
  for (Term x : operands(op, t->args[1])) out.push_back(x);
  return out;
}

Term gather(Pool& pool, Term t) {
  if (t->op != Op::logical_and && t->op != Op::logical_or) return t;
  const bool absorbing = t->op == Op::logical_or;
  std::vector<Term> xs;
  for (Term x : operands(t->op, t)) {
    if (x->op != Op::truth)
      xs.push_back(x);
    else if ((x->value != 0) == absorbing)
      return pool.truth(absorbing);
  }
  std::sort(xs.begin(), xs.end(), [](Term a, Term b) { return a->id < b->id; });
  xs.erase(std::unique(xs.begin(), xs.end()), xs.end());
  for (Term x : xs) {
    const Term opposite = simplify(logical_not(x));
    if (std::find(xs.begin(), xs.end(), opposite) != xs.end()) return pool.truth(absorbing);
  }
  if (xs.empty()) return pool.truth(!absorbing);
  Term out = xs[0];
  for (std::size_t i = 1; i < xs.size(); ++i) out = pool.must(t->op, {out, xs[i]});
  return out;
}

constexpr Rule rules[] = {
    {"compare_decided", "x <= y is True;  x < y is False;  x == y is False",
     "the sign of y - x is known by bounds; x == y also by congruence", decided},
    {"compare_order", "x < y is 0 <= y - x - 1;  0 <= g*x + c is 0 <= x + c // g",
     "no coefficient leaves 64 bits", order},
    {"compare_equation",
     "x == y is x - y == 0;  g*x + c == 0 is x + c // g == 0, or False if g does not divide c",
     "no coefficient leaves 64 bits; so for !=", equation},
    {"logic_negation", "not x <= y is y < x;  not (p and q) is not p or not q", "", negation},
    {"logic_gather", "p and q and p is p and q;  p and not p is False;  p or True is True",
     "operands in order, each once", gather},
};

}  // namespace

std::span<const Rule> logic_rules() {
  return rules;
}

}  // namespace tessera::term
