// Slots of rings in loops, counted instead of divided.
//
// In a loop that counts k by one, (base + k) % slots and (base + k) // slots are the slot and the
// round of a use of a ring, where base does not change in the loop. Two variables that the loop
// counts up stand for them. Of a power of two both are one operation anyway and stay what they are.
#pragma once

#include "core/kernel.h"
#include "term/sum.h"

namespace tessera::lower {

using term::Term;

struct Ring {
  term::Sum use;  // base + k
  int64_t slots = 1;
  std::vector<Term> slot, round;       // the loop's terms for them
  Term slot_at_first, round_at_first;  // of the loop's first trip, without k
};

/// The rings of a loop, of the terms that its body has, in the order of these.
std::vector<Ring> rings_of(const core::For& loop, const std::vector<Term>& terms);

/// Whether some ring has a variable for this term.
bool has_variable(const std::vector<Ring>& rings, Term t);

}  // namespace tessera::lower
