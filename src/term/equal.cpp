// equal: normal form, walk with symbols held apart, quotients and rests, trials.
#include "term/query.h"
#include "term/refute.h"

namespace tessera::term {
namespace {

Verdict proved(std::string how) {
  return {Outcome::proved, std::move(how)};
}

// Reads of one memory whose indices are equal, though not by normal form, become the same term.
Sum with_equal_reads(Pool& pool, Sum s, const Effort& effort) {
  for (std::size_t i = 0; i < s.parts.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const Term a = s.parts[i].atom, b = s.parts[j].atom;
      if (a->op != Op::read || b->op != Op::read || a->symbol != b->symbol) continue;
      bool same = true;
      for (std::size_t k = 0; k < a->args.size(); ++k)
        same = same && equal(a->args[k], b->args[k], effort).proved();
      const auto merged =
          same ? add_scaled(s, Sum{0, {{a, 1}}}, -s.parts[i].coefficient) : std::nullopt;
      const auto moved =
          merged ? add_scaled(*merged, Sum{0, {{b, 1}}}, s.parts[i].coefficient) : std::nullopt;
      if (moved) return with_equal_reads(pool, *moved, effort);
    }
  }
  return s;
}

}  // namespace

Verdict equal(Term t, Term u, const Effort& effort) {
  Pool& pool = t.pool();
  if (t->predicate()) {  // p == q for truth values
    const Term both = logical_and(t, u), neither = logical_and(logical_not(t), logical_not(u));
    return always(logical_or(both, neither), effort);
  }
  if (t == u) return proved("the same term");
  const Term apart = simplify(t - u);
  if (apart->op == Op::constant && apart->value == 0) return proved("normal form");
  const Sum s = with_equal_reads(pool, sum_of(apart), effort);
  if (s == Sum{}) return proved("normal form, with equal indices of reads");

  const Walked walked = walk_equation(pool, s, effort);
  if (walked.decided && walked.holds)
    return proved(fmt::format("enumeration of {} points", walked.points));
  Verdict out{Outcome::unknown, walked.reason};
  if (!walked.decided) {
    const Term rests = simplify(with_rests(term_of(pool, s), effort));
    if (rests->op == Op::constant && rests->value == 0)
      return proved("normal form of quotients and rests");
    const Walked again = walk_equation(pool, sum_of(rests), effort);
    if (again.decided && again.holds)
      return proved(fmt::format("enumeration of {} points of quotients and rests", again.points));
  }
  const Term claim = equals(t, u);
  std::optional<Assignment> witness =
      walked.exact ? refute_at(claim, walked.axes, walked.at) : std::nullopt;
  if (!witness) witness = refute(claim, equals(term_of(pool, s), pool.constant(0)), effort);
  if (!witness) {
    if (out.reason.empty())
      out.reason = "it differs at points that cannot be evaluated in 64 bits or are not admissible";
    return out;
  }
  return {Outcome::refuted, "", std::move(*witness)};
}

std::string to_string(const Verdict& v, const Pool& pool) {
  if (v.proved()) return "proved: " + v.reason;
  if (v.outcome == Outcome::unknown) return "unknown: " + v.reason;
  std::string out = "refuted at " + to_string(v.witness, pool);
  if (v.other != Assignment{}) out += " and " + to_string(v.other, pool);
  return out;
}

}  // namespace tessera::term
