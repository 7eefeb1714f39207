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

Term select_not(Pool& pool, Term t) {
  if (t->op != Op::select || (t->args[0]->op != Op::logical_not && t->args[0]->op != Op::not_equal))
    return t;
  return pool.must(Op::select, {simplify(logical_not(t->args[0])), t->args[2], t->args[1]});
}

constexpr Rule rules[] = {
    {"choice_decided", "min(x, y) = x;  max(x, y) = y", "x <= y by bounds", decided},
    {"choice_ordered", "min(y, x) = min(x, y)", "x was made before y; so for max", ordered},
    {"select_known", "select(True, x, y) = x;  select(False, x, y) = y", "", select_known},
    {"select_same", "select(p, x, x) = x", "", select_same},
    {"select_not", "select(not p, x, y) = select(p, y, x)", "", select_not},
};

}  // namespace

std::span<const Rule> choice_rules() {
  return rules;
}

}  // namespace tessera::term
