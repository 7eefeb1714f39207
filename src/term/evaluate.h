// The value of one term under one assignment: the meaning that all else is tested against.
#pragma once

#include <map>

#include "term/term.h"

namespace tessera::term {

/// Values of symbols by name, and of memories at indices.
struct Assignment {
  std::map<std::string, int64_t, std::less<>> symbols;
  std::map<std::pair<std::string, std::vector<int64_t>>, int64_t> reads;
  /// With a seed, reads that are not listed have invented values.
  std::optional<uint64_t> seed;
  friend bool operator==(const Assignment&, const Assignment&) = default;
};

/// `lane = 3, K = 64, perm[2] = 0`, in the order of declaration.
std::string to_string(const Assignment& a, const Pool& pool);

/// A value within the constant facts of a memory, the same for the same arguments; seed 0 gives the
/// least one that is near 0.
int64_t invented(const Symbol& memory, const std::vector<int64_t>& indices, uint64_t seed);

/// Exact: TS0824 if the value of a subterm that is evaluated does not fit 64 bits. TS0825 if a
/// symbol that is needed has no value, or one that its constant facts exclude. Of select only the
/// side that is taken is evaluated; predicates give 0 or 1. `used` gets the reads that took part.
Result<int64_t> evaluate(Term t, const Assignment& a, Assignment* used = nullptr);
/// Whether the values of `symbols` and of the reads obey their declared bounds, those that are
/// terms too. TS0825 says which does not.
Status admissible(const std::vector<Term>& symbols, const Assignment& a);

}  // namespace tessera::term
