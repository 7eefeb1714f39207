// The laws of simplify and of facts, tried on one term at all its trial points.
#pragma once

#include <string>

#include "term/testing/random_terms.h"

namespace tessera::term::testing {

struct Agreement {
  std::string fault;   // empty: none
  int64_t points = 0;  // that were compared
};

/// Where u has not t's value, or a value does not agree with the facts of t or u; empty: nowhere
/// among t's trial points. `compared` counts the points; they end where a value does not fit 64
/// bits.
std::string disagreement(Term t, Term u, int64_t& compared);

/// simplify(t) has t's value, and every value agrees with the facts of both; simplify ends and is
/// idempotent.
Agreement agreement(Term t);

}  // namespace tessera::term::testing
