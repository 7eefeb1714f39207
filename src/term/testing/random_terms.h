// Random terms over few symbols, and all points at which to try them. The same seed gives the same
// terms.
#pragma once

#include <random>

#include "term/program.h"

namespace tessera::term::testing {

/// Values of a leaf for trials: all of a coordinate's, some of an unbounded symbol's.
Axis trial_axis(Term leaf);
/// An axis for every symbol that the terms and its bounds have.
std::vector<Axis> trial_axes(const std::vector<Term>& terms);

class RandomTerms {
 public:
  explicit RandomTerms(uint64_t seed);

  Pool& pool() { return *pool_; }
  /// A number of at most `depth` operators in a row, over some of x, y (coordinates), k and j
  /// (counters), M, N (parameters), perm.
  Term number(int depth);
  Term predicate(int depth);
  /// Forgets all terms and declares other symbols.
  void renew();

 private:
  int draw(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  Term leaf();
  Term divisor();
  int64_t interesting();

  std::mt19937_64 random_;
  std::unique_ptr<Pool> pool_;
  std::vector<Term> leaves_;
  std::vector<Term> divisors_;
  const Symbol* memory_ = nullptr;
};

}  // namespace tessera::term::testing
