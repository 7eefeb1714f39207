#include "check/steady.h"

#include <string>

#include "check/place.h"
#include "term/query.h"

namespace tessera::check {

bool steady_from(Term t, Term counter, int64_t from) {
  using term::Op;
  term::Pool& pool = t.pool();
  const auto has = [&](Term x) { return term::any_node(x, [&](Term n) { return n == counter; }); };
  // A divisor or a shift's amount has to stay in bounds that a greater counter need not keep.
  if (term::any_node(t, [&](Term n) {
        if (n->op == Op::read) return true;
        return (n->op == Op::divide || n->op == Op::remainder || n->op == Op::shift_left ||
                n->op == Op::shift_right) &&
               has(n->args[1]);
      }))
    return false;
  const Term value =
      t->predicate() ? pool.must(Op::select, {t, pool.constant(1), pool.constant(0)}) : t;
  const Term first = pool.constant(from);
  const Result<Term> later =
      pool.derive("turn_from_" + std::to_string(from), Op::parameter, {.lower = first});
  return later &&
         term::equal(with_term(value, counter, *later), with_term(value, counter, first)).proved();
}

}  // namespace tessera::check
