// Slices of k: whether the turns of a product's loop, over all slices, take each part of k once.
//
// A slice has T = (ceil(K / n) - 1) // S + 1 turns of n elements each. Turn k of slice s takes the
// part s * T + k, so that a slice's parts follow one another, or k * S + s, so that slices take
// parts by turns. Both number the pairs (s, k), s < S and k < T, from 0 to S * T - 1, each once.
// And S * T * n >= K; what lies beyond K is zero.
#pragma once

#include <optional>
#include <string>

#include "check/means.h"
#include "check/place.h"

namespace tessera::check {

struct Slices {
  const core::Kernel& kernel;
  const Place& product;                      // that sums, in loops over tiles and over k
  Term k_corner, row_corner, column_corner;  // of what it multiplies
  Term slice;                                // the index by which the sums are stored
  Term count, extent;                        // of slices, of k
  int64_t per_turn = 1;                      // elements of k of a turn
};

/// With neither a reason nor a fault each element of k is in one slice, once.
struct Sliced {
  std::string why;  // what could not be decided
  std::string fault, expected, found;
};

Sliced judge_slices(const Slices& s);

/// The index of the output's slice at which the kernel stores; nothing where it stores no output.
std::optional<Term> stored_slice(const core::Kernel& kernel, const std::vector<Place>& all,
                                 const ElementAt& to);

}  // namespace tessera::check
