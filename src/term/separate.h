// A sum taken apart into symbols and what stands at them: sum = constant part + symbol *
// coefficient + ..., where coefficients depend on walked leaves alone.
#pragma once

#include "term/query.h"
#include "term/sum.h"

namespace tessera::term {

/// Whether a leaf can be walked: a coordinate, or a counter between constants.
bool is_walked(Term leaf);
/// Its values; count 0 for a loop that never runs.
Axis axis_of(Term leaf);
/// The axes of all walked leaves of the terms, in the order of declaration.
std::vector<Axis> axes_of(const std::vector<Term>& terms);
/// True if every leaf of t is walked and t reads no memory.
bool is_finite(Term t);

struct Separated {
  Term constant;  // finite
  struct Symbolic {
    Term symbol;       // a product of atoms that are not finite
    Term coefficient;  // finite
    bool mixed;        // the symbol has walked leaves too
  };
  std::vector<Symbolic> symbols;
};
Separated separate(Pool& pool, const Sum& s);

/// A claim on sums, by a walk over the finite leaves with symbols held apart.
struct Walked {
  bool decided = false;
  bool holds = false;  // of decided
  bool exact = false;  // of decided and not holds: it fails at `at` for every value of the symbols
  std::vector<Axis> axes;
  std::vector<int64_t> at;  // the first point of the axes where it fails, or could not be shown
  int64_t points = 0;
  std::string reason;
};
/// s == 0.
Walked walk_equation(Pool& pool, const Sum& s, const Effort& effort);
/// At least one of the sums is not negative.
Walked walk_clause(Pool& pool, const std::vector<Sum>& sums, const Effort& effort);
/// A predicate whose leaves are all finite.
Walked walk_predicate(Term p, const Effort& effort);

/// t with every parameter and unbounded counter under // or % of constants replaced by period *
/// quotient + rest, rest being a coordinate; t itself if there is none, or if the period is beyond
/// the effort. Whatever holds of the result for all values of its symbols holds of t, not the other
/// way round.
Term with_rests(Term t, const Effort& effort);

}  // namespace tessera::term
