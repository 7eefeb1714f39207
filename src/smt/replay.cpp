// A model of Z3 against the terms themselves.
#include <algorithm>

#include "smt/search.h"
#include "smt/shrink.h"
#include "term/refute.h"

namespace tessera::smt {

using term::Assignment;
using term::Term;

namespace {

// Every conjunct evaluates to true; `used` gets the reads of that and of the bounds.
bool holds(const std::vector<Term>& all, const Assignment& a, Assignment& used) {
  return std::all_of(all.begin(), all.end(), [&](Term p) {
    const Result<int64_t> value = evaluate(p, a, &used);
    return value && *value != 0;
  });
}

bool bounds_evaluate(const std::vector<Term>& symbols, const Assignment& a, Assignment& used) {
  for (Term s : symbols)
    for (Term bound : {s->symbol->bounds.lower, s->symbol->bounds.upper})
      if (bound && !evaluate(bound, a, &used)) return false;
  return true;
}

// With the reads of `a` that `see` meets, and no others.
template <class See>
std::optional<Assignment> used_part(const std::vector<Term>& symbols, Assignment a, See&& see) {
  a.seed = 0;
  Assignment used = a;
  used.reads.clear();
  used.seed.reset();
  if (!see(a, used) || !bounds_evaluate(symbols, a, used)) return std::nullopt;
  if (!admissible(symbols, used)) return std::nullopt;
  return used;
}

}  // namespace

std::optional<std::pair<Assignment, Assignment>> replayed(const Problem& problem,
                                                          const Assignment& candidate,
                                                          const Assignment& other) {
  std::vector<Term> terms = problem.original;
  terms.insert(terms.end(), problem.coordinates.begin(), problem.coordinates.end());
  const std::vector<Term> symbols = symbols_of(terms);
  Assignment seeded = candidate;
  seeded.seed = 0;
  const std::optional<Assignment> whole = term::complete(symbols, seeded);
  if (!whole) return std::nullopt;
  if (problem.coordinates.empty()) {
    auto one = used_part(symbols, *whole, [&](const Assignment& a, Assignment& used) {
      return holds(problem.original, a, used);
    });
    if (!one) return std::nullopt;
    return std::pair{*std::move(one), Assignment{}};
  }
  Assignment second = *whole;
  bool apart = false;
  for (Term c : problem.coordinates) {
    const std::string& name = c->symbol->name;
    second.symbols[name] = other.symbols.at(name);
    apart = apart || second.symbols[name] != whole->symbols.at(name);
  }
  std::optional<int64_t> value;
  const auto same = [&](const Assignment& a, Assignment& used) {
    const Result<int64_t> v = evaluate(problem.original[0], a, &used);
    if (!v || (value && *value != *v)) return false;
    value = *v;
    return true;
  };
  auto a = used_part(symbols, *whole, same), b = used_part(symbols, second, same);
  if (!apart || !a || !b) return std::nullopt;
  // One memory, of which each point lists what it reads.
  for (const auto& [place, v] : a->reads) b->reads.emplace(place, v);
  for (const auto& [place, v] : b->reads) a->reads.emplace(place, v);
  return std::pair{*std::move(a), *std::move(b)};
}

}  // namespace tessera::smt
