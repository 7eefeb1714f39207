// Questions about terms over all admissible assignments, and their verdicts.
//
// Normal forms and bounds come first. Then enumeration: coordinates and loops of constant bounds
// are walked point by point while what is linear in the parameters is held apart, coefficient by
// coefficient; a parameter under // or % of constants is taken apart into quotient and rest, and
// the rest is walked. Parameters get values only to refute. docs/terms.md says what is decided.
#pragma once

#include "term/evaluate.h"
#include "term/program.h"
#include "term/rules.h"

namespace tessera::term {

enum class Outcome : uint8_t { proved, refuted, unknown };

struct Verdict {
  Outcome outcome = Outcome::unknown;
  /// How it was proved ("normal form", "enumeration of 512 points"), or why it is unknown.
  std::string reason;
  /// Of refuted: an admissible assignment at which the claim fails, evaluated before it is
  /// reported. The first such point in the order of declaration, for the first of the tried values
  /// of the parameters.
  Assignment witness;
  /// Of is_injective refuted: the second assignment, which differs from the first in the
  /// coordinates asked about.
  Assignment other;

  [[nodiscard]] bool proved() const { return outcome == Outcome::proved; }
  [[nodiscard]] bool refuted() const { return outcome == Outcome::refuted; }
};

/// Limits of one question, in work, so that verdicts do not depend on the machine.
struct Effort {
  int64_t operations = int64_t{1} << 26;  // points times operations of a walk; about 0.1 s
  int64_t period = 4096;                  // largest range of a rest that is walked
};

/// t == u wherever both are defined.
Verdict equal(Term t, Term u, const Effort& effort = {});
/// The predicate holds.
Verdict always(Term p, const Effort& effort = {});
/// low <= t < high.
Verdict in_range(Term t, Term low, Term high, const Effort& effort = {});
/// Different values of `coordinates` (all else alike) give different values of t. They are
/// coordinates of the pool.
Verdict is_injective(Term t, const std::vector<Term>& coordinates, const Effort& effort = {});

std::string to_string(const Verdict& v, const Pool& pool);

}  // namespace tessera::term
