// Small launches, to find where what should always hold does not.
#pragma once

#include "check/place.h"

namespace tessera::check {

/// Two points of small launches at which the term has different values, in words; nothing where it
/// has one value at all that are tried. `loops` are those around the term, the outermost first.
std::optional<std::string> varies(const core::Kernel& kernel,
                                  const std::vector<const core::For*>& loops, Term t,
                                  const Known& known = {});

/// A point of a small launch at which the predicate is false, in words; nothing where it holds at
/// all that are tried.
std::optional<std::string> fails(const core::Kernel& kernel,
                                 const std::vector<const core::For*>& loops, Term predicate,
                                 const Known& known = {});

/// The lengths of attention: parameters, and what a tile and a block have of them.
struct Lengths {
  Term queries, keys;
  int64_t rows = 1, block = 1;
};
/// The same for launches of many lengths, all other parameters at their least, each tile in a block
/// of its own, in the first blocks: as windows and masks differ at few lengths alone.
std::optional<std::string> fails_at_lengths(const core::Kernel& kernel,
                                            const std::vector<const core::For*>& loops,
                                            Term predicate, const Lengths& lengths);

}  // namespace tessera::check
