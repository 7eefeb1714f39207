// Whether a kernel computes what it means, tried on random residues (residue/value.h).
//
// The interpreter runs the kernel at small sizes on residues in the place of numbers, and the
// meaning is computed on the same. Where both are functions that differ, they differ at random
// inputs but for the probability that the answer states (docs/checker.md). Nothing here knows how
// the kernel computes: neither the formulas of src/check nor the order of its steps.
#pragma once

#include <string>
#include <vector>

#include "diag/result.h"

#include "check/means.h"
#include "core/kernel.h"

namespace tessera::equivalence {

/// Work, not time.
struct Effort {
  int launches = 6;
  int64_t products = int64_t{1} << 27;  // multiplications of all launches' meanings, about
};

enum class Verdict : uint8_t {
  equal,      // in every element of every launch
  different,  // in an element that is named
  undecided,  // no launch could be run, a fault ended the run, or nothing could be compared
};
std::string_view name_of(Verdict v);

struct Answer {
  Verdict verdict = Verdict::undecided;
  std::string reason;                 // of undecided
  std::vector<std::string> launches;  // those that ran: "M = 64, N = 128, K = 32, ..."
  int64_t elements = 0;               // that were compared
  /// Of equal: at most so likely do both differ as functions at one of these launches, for kernels
  /// whose results have no higher degree than what is meant.
  double error = 1;
  /// Of different: the element, and whether numbers show it too (both within their rounding).
  std::string element;
  bool numbers_differ = false;
  /// Of different, and of undecided where a fault ended the run: what numbers show of it, at which
  /// launch; "" for nothing.
  std::string seen;
};

/// `sizes`: numbers of turns of the kernel's loops (check::Report::sizes), which choose the
/// launches.
Answer compare(const core::Kernel& kernel, const check::Means& means,
               const std::vector<core::Term>& sizes, const Effort& effort = {});

/// One line.
std::string to_text(const Answer& a);

}  // namespace tessera::equivalence
