// The normal form of sums: constant + coefficient * atom + ..., where an atom is a term that is no
// sum, or a product of such.
#pragma once

#include "term/term.h"

namespace tessera::term {

struct Part {
  Term atom;  // neither a constant nor a sum; a product has its factors in the order of their ids
  int64_t coefficient = 1;
  friend bool operator==(const Part&, const Part&) = default;
};

/// Parts in the order of their atoms' ids, each atom once, no coefficient 0.
struct Sum {
  int64_t constant = 0;
  std::vector<Part> parts;

  [[nodiscard]] bool is_constant() const { return parts.empty(); }
  friend bool operator==(const Sum&, const Sum&) = default;
};

/// t through its + - and products, which are multiplied out. What would overflow 64 bits, or have
/// more than 64 parts, stays an atom: sum_of(t) always equals t.
Sum sum_of(Term t);
/// The same sum as a term: parts in order, the constant last. sum_of(term_of(s)) == s.
Term term_of(Pool& pool, const Sum& s);

Sum constant_sum(int64_t value);
/// nullopt where a coefficient would not fit 64 bits.
std::optional<Sum> add(const Sum& a, const Sum& b);
std::optional<Sum> scale(const Sum& a, int64_t by);
/// a + by * b
std::optional<Sum> add_scaled(const Sum& a, const Sum& b, int64_t by);
/// The factors of an atom, in order; one that is no product is its own factor.
std::vector<Term> factors_of(Term atom);
/// The product of factors, in canonical order; the constant 1 of none.
Term product_of(Pool& pool, std::vector<Term> factors);

/// What is known of a sum from its parts.
Facts facts_of_sum(const Sum& s);
/// How many nodes its atoms have: rules on sums make it smaller.
int64_t weight(const Sum& s);

}  // namespace tessera::term
