// Assignments at which a predicate fails.
#pragma once

#include "term/separate.h"

namespace tessera::term {

/// An admissible assignment of `symbols` with `fixed` as given: what is left gets its first
/// admissible value.
std::optional<Assignment> complete(const std::vector<Term>& symbols, const Assignment& fixed);

/// An assignment of `claim`'s symbols at which it is false by evaluate(). `reduced` is a predicate
/// of the same truth, which is walked instead. Parameters, loops between them and reads have some
/// small admissible values, and some beside the constants of `reduced`.
std::optional<Assignment> refute(Term claim, Term reduced, const Effort& effort);
/// The same, given the point of the walked leaves.
std::optional<Assignment> refute_at(Term claim, const std::vector<Axis>& axes,
                                    const std::vector<int64_t>& at);

}  // namespace tessera::term
