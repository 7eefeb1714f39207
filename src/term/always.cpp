// always: clauses of orders, each by bounds, by pairs of its literals, or by a walk.
#include "term/bound.h"
#include "term/query.h"
#include "term/refute.h"

namespace tessera::term {
namespace {

using Clause = std::vector<Sum>;  // at least one sum is not negative
constexpr std::size_t most_clauses = 32;

std::vector<Clause> both(std::vector<Clause> a, std::vector<Clause> b) {
  for (Clause& c : b) a.push_back(std::move(c));
  return a;
}

std::optional<std::vector<Clause>> either(const std::vector<Clause>& a,
                                          const std::vector<Clause>& b) {
  if (a.size() * b.size() > most_clauses) return std::nullopt;
  std::vector<Clause> out;
  for (const Clause& x : a)
    for (const Clause& y : b) {
      out.push_back(x);
      out.back().insert(out.back().end(), y.begin(), y.end());
    }
  return out;
}

// e == 0 as 0 <= e and 0 <= -e; e != 0 as 0 <= e - 1 or 0 <= -e - 1.
std::optional<std::vector<Clause>> of_equation(Term p) {
  const auto e = add_scaled(sum_of(p->args[0]), sum_of(p->args[1]), -1);
  const auto negative = e ? scale(*e, -1) : std::nullopt;
  if (!negative) return std::nullopt;
  if (p->op == Op::equal) return std::vector<Clause>{{*e}, {*negative}};
  const auto above = add(*e, constant_sum(-1)), below = add(*negative, constant_sum(-1));
  if (!above || !below) return std::nullopt;
  return std::vector<Clause>{{*above, *below}};
}

// Of a predicate in normal form; nullopt if it has too many clauses.
std::optional<std::vector<Clause>> clauses_of(Term p) {
  switch (p->op) {
    case Op::truth:
      return p->value != 0 ? std::vector<Clause>{} : std::vector<Clause>{{constant_sum(-1)}};
    case Op::less_equal:
    case Op::less: {
      auto e = add_scaled(sum_of(p->args[1]), sum_of(p->args[0]), -1);
      if (e && p->op == Op::less) e = add(*e, constant_sum(-1));
      return e ? std::optional(std::vector<Clause>{{*e}}) : std::nullopt;
    }
    case Op::equal:
    case Op::not_equal:
      return of_equation(p);
    case Op::logical_and:
    case Op::logical_or: {
      const auto a = clauses_of(p->args[0]), b = clauses_of(p->args[1]);
      if (!a || !b || a->size() + b->size() > most_clauses) return std::nullopt;
      return p->op == Op::logical_and ? both(*a, *b) : either(*a, *b);
    }
    default:
      return std::nullopt;
  }
}

// Were both negative, by * a + b would be at most -by - 1.
bool excludes(Pool& pool, const Sum& a, const Sum& b, int64_t by) {
  const auto sum = add_scaled(b, a, by);
  return sum && proves_at_least(pool, *sum, -by);
}

bool by_pairs(Pool& pool, const Clause& clause) {
  for (const Sum& a : clause) {
    if (proves_at_least(pool, a, 0)) return true;
    for (const Sum& b : clause) {
      if (&a == &b) continue;
      if (excludes(pool, a, b, 1)) return true;
      for (const Part& p : a.parts)
        for (const Part& q : b.parts) {
          if (p.atom != q.atom || (p.coefficient < 0) == (q.coefficient < 0) ||
              q.coefficient % p.coefficient != 0)
            continue;
          if (excludes(pool, a, b, -(q.coefficient / p.coefficient))) return true;
        }
    }
  }
  return false;
}

// Empty: proved. Else why not.
std::string gap(Pool& pool, const std::vector<Clause>& clauses, const Effort& effort,
                int64_t& points) {
  for (const Clause& c : clauses) {
    if (by_pairs(pool, c)) continue;
    const Walked w = walk_clause(pool, c, effort);
    if (!w.decided || !w.holds) return w.reason.empty() ? "it fails at a point" : w.reason;
    points += w.points;
  }
  return "";
}

// The clauses of p, or p point by point if it is finite.
std::string gap(Term p, const Effort& effort, int64_t& points) {
  Pool& pool = p.pool();
  const auto clauses = clauses_of(p);
  std::string why = clauses ? gap(pool, *clauses, effort, points) : "it has too many clauses";
  if (why.empty() || !is_finite(p)) return why;
  const Walked w = walk_predicate(p, effort);
  points += w.points;
  if (!w.decided) return w.reason;
  return w.holds ? "" : "it fails at a point";
}

}  // namespace

Verdict always(Term p, const Effort& effort) {
  const Term normal = simplify(p);
  if (normal->op == Op::truth && normal->value != 0) return {Outcome::proved, "normal form"};
  int64_t points = 0;
  const auto how = [&](const char* of) {
    return points == 0 ? std::string("bounds")
                       : fmt::format("enumeration of {} points{}", points, of);
  };
  std::string why = gap(normal, effort, points);
  if (why.empty()) return {Outcome::proved, how("")};
  if (std::optional<Assignment> witness = refute(p, normal, effort))
    return {Outcome::refuted, "", std::move(*witness)};
  const Term rests = simplify(with_rests(normal, effort));
  if (rests != normal && gap(rests, effort, points).empty())
    return {Outcome::proved, how(" of quotients and rests")};
  return {Outcome::unknown, std::move(why)};
}

Verdict in_range(Term t, Term low, Term high, const Effort& effort) {
  return always(logical_and(less_equal(low, t), less(t, high)), effort);
}

}  // namespace tessera::term
