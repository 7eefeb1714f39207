// min, max and select.
#include "term/bound.h"
#include "term/rules.h"

namespace tessera::term {
namespace {

Term decided(Pool& pool, Term t) {
  if (t->op == Op::select) return t;
  const Sum a = sum_of(t->args[0]), b = sum_of(t->args[1]);
  if (a == b || proves_less_equal(pool, a, b)) return t->args[t->op == Op::min ? 0 : 1];
  if (proves_less_equal(pool, b, a)) return t->args[t->op == Op::min ? 1 : 0];
  return t;
}

Term ordered(Pool& pool, Term t) {
  if (t->op == Op::select || t->args[0]->id < t->args[1]->id) return t;
  return pool.must(t->op, {t->args[1], t->args[0]});
}

Term select_known(Pool&, Term t) {
  if (t->op != Op::select || t->args[0]->op != Op::truth) return t;
  return t->args[t->args[0]->value != 0 ? 1 : 2];
}

Term select_same(Pool&, Term t) {
  return t->op == Op::select && t->args[1] == t->args[2] ? t->args[1] : t;
}

// Of a predicate and its negation one is chosen: neither `not` nor `!=`, and in 0 <= sum the first
// coefficient above 0.
bool is_turned(Term p) {
  if (p->op == Op::logical_not || p->op == Op::not_equal) return true;
  if (p->op != Op::less_equal) return false;
  const Sum s = sum_of(p->args[1]);
  return !s.is_constant() && s.parts[0].coefficient < 0;
}

Term select_turned(Pool& pool, Term t) {
  if (t->op != Op::select || !is_turned(t->args[0])) return t;
  const Term other = simplify(logical_not(t->args[0]));
  return is_turned(other) ? t : pool.must(Op::select, {other, t->args[2], t->args[1]});
}

constexpr Rule rules[] = {
    {"choice_decided", "min(x, y) = x;  max(x, y) = y", "x <= y by bounds", decided},
    {"choice_ordered", "min(y, x) = min(x, y)", "x was made before y; so for max", ordered},
    {"select_known", "select(True, x, y) = x;  select(False, x, y) = y", "", select_known},
    {"select_same", "select(p, x, x) = x", "", select_same},
    {"select_turned", "select(not p, x, y) = select(p, y, x)",
     "p is x == y, or 0 <= sum whose first coefficient is above 0", select_turned},
};

}  // namespace

std::span<const Rule> choice_rules() {
  return rules;
}

}  // namespace tessera::term
