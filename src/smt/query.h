// The last tier of verdicts on index terms: the questions of term/query.h, put to Z3.
//
// A question becomes the search for an admissible assignment at which the claim fails. Its normal
// form is written as bit vectors, where every number is bounded within 64 bits, or as integers.
// That there is no such assignment is Z3's word; one that it finds is evaluated, and checked
// admissible, before it is reported. docs/smt.md says how terms are written and what it costs.
#pragma once

#include "smt/session.h"
#include "term/query.h"

namespace tessera::smt {

/// In units of Z3's own count, so that a verdict depends on the version of Z3 and not on the
/// machine.
struct Limits {
  unsigned work = 4'000'000;  // of a check; every part of a question has one to four
};

/// What decided: normal form, bounds and walks (term/query.h), or Z3 by one way of writing numbers.
enum class Tier : uint8_t { none, terms, bit_vectors, integers };
std::string_view name_of(Tier tier);

/// A question of term/query.h, by the name of its function.
struct Question {
  enum class Kind : uint8_t { equal, always, in_range, is_injective };
  Kind kind = Kind::always;
  std::vector<term::Term> terms;        // its arguments: t and u; p; t, low and high; t
  std::vector<term::Term> coordinates;  // of is_injective
};

struct Decision {
  term::Verdict verdict;
  Tier by = Tier::none;  // none: unknown
  int64_t work = 0;      // of Z3, in its units
};

/// Index arithmetic first, then Z3 where that leaves the question open. Unknown has the reasons of
/// both.
Decision decide(const Question& question, const term::Effort& effort = {},
                const Limits& limits = {});

/// The normal form and Z3 alone. Without libz3 what the normal form does not decide is unknown, and
/// the reason says what is missing.
Decision ask(const Question& question, const Limits& limits = {});
term::Verdict equal(term::Term t, term::Term u, const Limits& limits = {});
term::Verdict always(term::Term p, const Limits& limits = {});
term::Verdict in_range(term::Term t, term::Term low, term::Term high, const Limits& limits = {});
term::Verdict is_injective(term::Term t, const std::vector<term::Term>& coordinates,
                           const Limits& limits = {});

/// Whether a conjunction has a model.
struct Satisfiability {
  Answer answer = Answer::unknown;
  std::string reason;      // of unsatisfiable: how that was found; of unknown: why
  term::Assignment model;  // of satisfiable: admissible, and every conjunct evaluates to true
  Tier by = Tier::none;
  int64_t work = 0;  // of Z3, in its units
};
/// The terms are predicates of one pool, at least one.
Satisfiability satisfiable(const std::vector<term::Term>& conjunction, const Limits& limits = {});

}  // namespace tessera::smt
