#include "smt/query.h"

#include <algorithm>

#include "base/text.h"

#include "smt/search.h"
#include "term/sum.h"

namespace tessera::smt {

using term::Op;
using term::Outcome;
using term::Term;
using term::Verdict;

namespace {

std::string why_none(const Diagnostic& d) {
  return d.message + (d.helps.empty() ? "" : ": " + d.helps[0]);
}

// The conjunctions of which one has to have a model: a term that is an `or` by itself is asked in
// parts, which are easier.
std::vector<Term> alternatives(Term p) {
  if (p->op != Op::logical_or) return {p};
  std::vector<Term> out = alternatives(p->args[0]);
  for (Term q : alternatives(p->args[1])) out.push_back(q);
  return out;
}

// The parts of a sum that depend on the coordinates; the others are equal at both points.
Term moving(Term t, const std::vector<Term>& coordinates) {
  const Term normal = simplify(t);
  term::Sum out;
  for (const term::Part& p : sum_of(normal).parts) {
    const bool depends = term::any_node(p.atom, [&](Term n) {
      return std::find(coordinates.begin(), coordinates.end(), n) != coordinates.end();
    });
    if (depends) out.parts.push_back(p);
  }
  return term_of(t.pool(), out);
}

// The predicate that the question claims of all assignments.
Term claim(const Question& q) {
  const std::vector<Term>& t = q.terms;
  switch (q.kind) {
    case Question::Kind::equal:
      if (!t[0]->predicate()) return equals(t[0], t[1]);
      return logical_or(logical_and(t[0], t[1]), logical_and(logical_not(t[0]), logical_not(t[1])));
    case Question::Kind::in_range:
      return logical_and(less_equal(t[1], t[0]), less(t[0], t[2]));
    default:
      return t[0];
  }
}

Decision decision(Found f) {
  Verdict v{Outcome::unknown, std::move(f.reason)};
  if (f.answer == Answer::unsatisfiable) v.outcome = Outcome::proved;
  if (f.answer == Answer::satisfiable)
    v = {Outcome::refuted, "", std::move(f.model), std::move(f.other)};
  return {std::move(v), f.by, f.work};
}

Decision ask_injective(Term t, const std::vector<Term>& coordinates, const Limits& limits) {
  for (Term c : coordinates)
    if (!c->leaf() || c->symbol == nullptr)
      return {{Outcome::unknown, fmt::format("`{}` is no symbol", to_string(c))}};
  const Result<Library>& z3 = library();
  if (!z3) return {{Outcome::unknown, why_none(z3.error())}};
  return decision(search(*z3, {{t}, {moving(t, coordinates)}, coordinates}, limits));
}

Verdict by_terms(const Question& q, const term::Effort& effort) {
  const std::vector<Term>& t = q.terms;
  switch (q.kind) {
    case Question::Kind::equal:
      return term::equal(t[0], t[1], effort);
    case Question::Kind::always:
      return term::always(t[0], effort);
    case Question::Kind::in_range:
      return term::in_range(t[0], t[1], t[2], effort);
    case Question::Kind::is_injective:
      break;
  }
  return term::is_injective(t[0], q.coordinates, effort);
}

}  // namespace

std::string_view name_of(Tier tier) {
  constexpr std::string_view names[] = {"none", "index arithmetic", "Z3 with bit vectors",
                                        "Z3 with integers"};
  return names[static_cast<int>(tier)];
}

Satisfiability satisfiable(const std::vector<Term>& conjunction, const Limits& limits) {
  std::vector<Term> normal;
  for (Term p : conjunction) normal.push_back(simplify(p));
  std::vector<std::vector<Term>> parts{normal};
  if (normal.size() == 1) {
    parts.clear();
    for (Term p : alternatives(normal[0])) parts.push_back({p});
  }
  Satisfiability out{Answer::unsatisfiable, "normal form", {}, Tier::terms};
  for (std::vector<Term>& part : parts) {
    const auto is_false = [](Term p) { return p->op == Op::truth && p->value == 0; };
    if (std::any_of(part.begin(), part.end(), is_false)) continue;
    const Result<Library>& z3 = library();
    if (!z3) return {Answer::unknown, why_none(z3.error())};
    Found f = search(*z3, {conjunction, std::move(part), {}}, limits);
    const int64_t work = out.work + f.work;
    // One part that is open leaves the whole open, unless another has a model.
    if (f.answer != Answer::unsatisfiable || out.answer != Answer::unknown)
      out = {f.answer, std::move(f.reason), std::move(f.model), f.by};
    out.work = work;
    if (f.answer == Answer::satisfiable) break;
  }
  return out;
}

Decision ask(const Question& question, const Limits& limits) {
  if (question.kind == Question::Kind::is_injective)
    return ask_injective(question.terms.at(0), question.coordinates, limits);
  Satisfiability s = satisfiable({logical_not(claim(question))}, limits);
  return decision({s.answer, std::move(s.reason), std::move(s.model), {}, s.by, s.work});
}

Decision decide(const Question& question, const term::Effort& effort, const Limits& limits) {
  Verdict v = by_terms(question, effort);
  if (v.outcome != Outcome::unknown) return {std::move(v), Tier::terms};
  Decision out = ask(question, limits);
  if (out.verdict.outcome == Outcome::unknown)
    out.verdict.reason = v.reason + "; " + out.verdict.reason;
  return out;
}

Verdict equal(Term t, Term u, const Limits& limits) {
  return ask({Question::Kind::equal, {t, u}, {}}, limits).verdict;
}

Verdict always(Term p, const Limits& limits) {
  return ask({Question::Kind::always, {p}, {}}, limits).verdict;
}

Verdict in_range(Term t, Term low, Term high, const Limits& limits) {
  return ask({Question::Kind::in_range, {t, low, high}, {}}, limits).verdict;
}

Verdict is_injective(Term t, const std::vector<Term>& coordinates, const Limits& limits) {
  return ask({Question::Kind::is_injective, {t}, coordinates}, limits).verdict;
}

}  // namespace tessera::smt
