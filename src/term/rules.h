// Rewriting into normal form. Every rule is one function of a table (rules_<family>.cpp) with its
// law and its side condition, which it proves before it applies.
//
// Law: simplify(t) has the value of t under every admissible assignment. The normal form of equal
// terms is often, not always, the same node; query.h decides the rest.
#pragma once

#include <span>

#include "term/term.h"

namespace tessera::term {

struct Rule {
  std::string_view name;       // "divide_split"
  std::string_view law;        // "(d*q + r) // d = q + r // d"
  std::string_view condition;  // "0 <= r < d", or "" where the law always holds
  /// The rewritten term, or `t` itself where the rule does not apply. Arguments of t are in normal
  /// form.
  Term (*apply)(Pool& pool, Term t);
};

/// A node that became another by one rule at its root.
struct TraceStep {
  const Rule* rule = nullptr;
  Term before;
  Term after;
};
using Trace = std::vector<TraceStep>;

/// `t` in normal form. With a trace: every rule that took part, inner terms first, each step once;
/// `before` has arguments in normal form, so a step can be checked by itself.
Term simplify(Term t, Trace* trace = nullptr);
/// Beyond 20 000 steps simplify gives up, counted in Pool::gave_up: the result is then right but
/// not normal.
inline constexpr int most_steps = 20'000;

struct RuleFamily {
  std::string_view name;  // "division"
  std::span<const Rule> rules;
};
/// In the order in which they are tried; a family's rules look only at nodes of their own
/// operators.
std::span<const RuleFamily> rule_families();
const Rule* find_rule(std::string_view name);
/// The table of docs/terms.md.
std::string rules_as_markdown();

std::span<const Rule> sum_rules();       // + - *: rules_sums.cpp
std::span<const Rule> division_rules();  // // and %: rules_division.cpp, rules_remainder.cpp
std::span<const Rule> remainder_rules();
std::span<const Rule> bit_rules();     // ^ & | << >>: rules_bits.cpp
std::span<const Rule> choice_rules();  // min, max, select, read: rules_choice.cpp
std::span<const Rule> logic_rules();   // comparisons, and, or, not: rules_logic.cpp

}  // namespace tessera::term
