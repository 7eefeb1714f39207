#include "smt/encoding.h"

#include <algorithm>

namespace tessera::smt {

using term::Op;
using term::Term;

Encoding::Encoding(const Encoding& other, const std::vector<Term>& anew)
    : session_(other.session_),
      numbers_(other.numbers_),
      mark_(other.mark_ + "'"),
      leaves_(other.leaves_) {
  for (Term t : anew) leaves_.erase(t);
}

Expr Encoding::of(Term t) {
  const auto known = known_.find(t.node());
  if (known != known_.end()) return known->second;
  Expr e = made(t);
  known_[t.node()] = e;
  return e;
}

Expr Encoding::made(Term t) {
  if (t->op == Op::constant) return numbers_.constant(t->value);
  if (t->op == Op::truth) return session_.truth(t->value != 0);
  if (t->leaf()) return leaf(t);
  if (t->op == Op::read) return read(t);
  std::vector<Expr> x;
  x.reserve(t->args.size());
  for (Term a : t->args) x.push_back(of(a));
  switch (t->op) {
    case Op::min:
      return session_.choice(numbers_.less_equal(x[0], x[1]), x[0], x[1]);
    case Op::max:
      return session_.choice(numbers_.less_equal(x[0], x[1]), x[1], x[0]);
    case Op::select:
      return session_.choice(x[0], x[1], x[2]);
    case Op::logical_and:
      return session_.all(x);
    case Op::logical_or:
      return session_.any(x);
    case Op::logical_not:
      return session_.negation(x[0]);
    default:
      return t->predicate() ? compared(t, x)
                            : numbers_.arithmetic(t, x, [this](Term other) { return of(other); });
  }
}

Expr Encoding::compared(Term t, const std::vector<Expr>& x) {
  if (t->op == Op::less) return numbers_.less(x[0], x[1]);
  if (t->op == Op::less_equal) return numbers_.less_equal(x[0], x[1]);
  Expr same = session_.equal(x[0], x[1]);
  return t->op == Op::equal ? same : session_.negation(same);
}

Expr Encoding::leaf(Term t) {
  const auto known = leaves_.find(t);
  if (known != leaves_.end()) return known->second;
  const term::Facts& f = t->symbol->facts;
  if (f.lower && f.upper && *f.lower > *f.upper) {  // a residue class with no value in the range
    numbers_.conditions.push_back(session_.truth(false));
    return leaves_[t] = numbers_.constant(*f.lower);
  }
  return leaves_[t] = numbers_.unknown(t->symbol->name + mark_, f);
}

Expr Encoding::read(Term t) {
  std::vector<Expr> indices;
  indices.reserve(t->args.size());
  for (Term a : t->args) indices.push_back(of(a));
  Expr e = session_.applied(t->symbol->name, indices, numbers_.sort());
  // A memory that has a value at all has one that agrees with its facts, so that this excludes no
  // assignment of the symbols.
  numbers_.conditions.push_back(numbers_.agrees(e, t->symbol->facts));
  reads_.emplace_back(t, e);
  return e;
}

Expr Encoding::defined(Term t) {
  const auto known = defined_.find(t.node());
  if (known != defined_.end()) return known->second;
  Expr e = reached(t);
  defined_[t.node()] = e;
  return e;
}

// Evaluation leaves out the side of a select that is not taken, and the second operand of `and` and
// `or` where the first decides.
Expr Encoding::reached(Term t) {
  const Expr always = session_.truth(true);
  const auto where = [&](Expr p, Term a) {
    Expr d = defined(a);
    return d == always ? d : session_.any({session_.negation(p), d});
  };
  std::vector<Expr> all;
  if (t->op == Op::select) {
    Expr p = of(t->args[0]);
    all = {defined(t->args[0]), where(p, t->args[1]), where(session_.negation(p), t->args[2])};
  } else if (t->op == Op::logical_and || t->op == Op::logical_or) {
    Expr p = of(t->args[0]);
    all = {defined(t->args[0]),
           where(t->op == Op::logical_and ? p : session_.negation(p), t->args[1])};
  } else {
    for (Term a : t->args) all.push_back(defined(a));
  }
  if (t->op == Op::read) all.push_back(within(*t->symbol, of(t)));
  std::erase(all, always);
  return session_.all(all);
}

Expr Encoding::within(const term::Symbol& s, Expr value) {
  std::vector<Expr> all;
  if (Term low = s.bounds.lower; low && !(low->op == Op::constant && s.facts.at_least(low->value)))
    all.insert(all.end(), {defined(low), numbers_.less_equal(of(low), value)});
  // One more than the greatest value; a range that is empty is said to have its lower bound.
  if (Term end = s.bounds.upper;
      end && !(end->op == Op::constant && s.facts.upper && *s.facts.upper < end->value))
    all.insert(all.end(), {defined(end), numbers_.less(value, of(end))});
  return session_.all(all);
}

Expr Encoding::admissible(const std::vector<Term>& symbols) {
  std::vector<Expr> all;
  all.reserve(symbols.size());
  for (Term t : symbols) all.push_back(within(*t->symbol, of(t)));
  return session_.all(all);
}

}  // namespace tessera::smt
