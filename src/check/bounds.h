// What a bounded access of registers is conditional on.
#pragma once

#include <vector>

#include "term/query.h"
#include "term/rules.h"

namespace tessera::check {

constexpr term::Effort effort_of_a_bound = {.operations = 1 << 18};

inline bool same(term::Term a, term::Term b) {
  return a == b || term::simplify(a) == term::simplify(b);
}

/// What all has to hold where an operand of 1 and 0 (`inside`) is 1; what always holds is left out.
inline std::vector<term::Term> conditions_of(term::Term inside) {
  term::Pool& pool = inside.pool();
  const bool chooses = inside->op == term::Op::select && inside->args[1] == pool.constant(1) &&
                       inside->args[2] == pool.constant(0);
  std::vector<term::Term> open = {
      chooses ? inside->args[0] : pool.must(term::Op::not_equal, {inside, pool.constant(0)})};
  std::vector<term::Term> out;
  while (!open.empty()) {
    const term::Term t = open.back();
    open.pop_back();
    if (t->op == term::Op::logical_and)
      open.insert(open.end(), t->args.rbegin(), t->args.rend());
    else if (t->op != term::Op::truth || t->value == 0)
      out.push_back(t);
  }
  return out;
}

}  // namespace tessera::check
