// Index expressions of kernels, each a claim that is true or nearly so.
#pragma once

#include <ostream>
#include <span>
#include <string>

#include "term/query.h"

namespace tessera::term::testing {

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): a row reads in this order
struct Claim {
  enum class Kind : uint8_t { equal, always, injective };

  const char* name;
  Kind kind;
  const char* left;  // of injective: the value
  const char*
      right;  // of equal: the other side; of injective: the coordinates, with blanks between
  Outcome outcome = Outcome::proved;  // of the questions of query.h
};

/// gtest prints a claim by its name.
inline void PrintTo(const Claim& c, std::ostream* out) {
  *out << c.name;
}

std::span<const Claim> claims();

/// Declares the symbols of all claims.
void declare_symbols(Pool& pool);

/// The terms of a claim, over symbols that are declared.
struct Terms {
  Term left;
  Term right;                     // of equal
  std::vector<Term> coordinates;  // of injective
};
/// Throws std::logic_error where a text is no term.
Terms terms_of(Pool& pool, const Claim& claim);

/// Why `v`, which is refuted, is no counterexample of the claim: its witness is not admissible, or
/// the claim holds there. Empty: it is one.
std::string fault_of_witness(const Claim& claim, const Terms& q, const Verdict& v);

}  // namespace tessera::term::testing
