// Terms that a loop's counter changes in its first turns alone.
#pragma once

#include "term/term.h"

namespace tessera::check {

using term::Term;

/// Whether the term, or predicate, is proved to have one value for all values of the counter from
/// `from` on, whatever values other symbols have.
bool steady_from(Term t, Term counter, int64_t from);

}  // namespace tessera::check
