// Sums of products of residues.
#pragma once

#include <vector>

#include "residue/field.h"
#include "residue/value.h"

namespace tessera::equivalence {

/// Elements of an input, one residue after the other.
using Pairs = std::vector<residue::Pair>;
Pairs pairs_of(const std::vector<residue::Value>& values);

/// The sum of a[at_a + k step_a] b[at_b + k step_b] over `count` of k.
struct Walk {
  const Pairs& elements;
  int64_t at = 0, step = 1;
};
inline residue::Value dot(const Walk& a, const Walk& b, int64_t count) {
  uint64_t of_p = 0, of_q = 0;
  for (int64_t k = 0; k < count; ++k) {
    const residue::Pair x = a.elements[static_cast<std::size_t>(a.at + k * a.step)];
    const residue::Pair y = b.elements[static_cast<std::size_t>(b.at + k * b.step)];
    of_p = residue::plus_product(of_p, x.mod_p, y.mod_p, residue::p);
    of_q = residue::plus_product(of_q, x.mod_q, y.mod_q, residue::q);
  }
  return residue::residues(of_p % residue::p, of_q % residue::q);
}

}  // namespace tessera::equivalence
