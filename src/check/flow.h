// Where the elements go: which element of A meets which of B in a product, which sums come about,
// and where they are stored; for all sizes, lanes and steps.
//
// An element carries the tensor's index that it was loaded from, as a term of the tile's corner
// (the coordinates of its copy) and a number. Corners are compared as terms, numbers by walking all
// elements of a tile. Which copy a read sees, and that it is of the same turn, the runs have proved
// (Runs::reads_from).
#pragma once

#include <map>

#include "check/means.h"
#include "check/runs.h"

namespace tessera::check {

struct Flow {
  std::vector<Violation> violations;            // of k_agreement, reduction, placement, output_once
  std::map<std::string_view, std::string> why;  // kind that could not be decided: the reason
  std::string left_out;                         // of the sums, small as it is: turn_sum.h
  bool whole = true;  // false: what was found ended the tracing, and nothing more is known
};

/// `runs` have been proved.
Flow flow(const core::Kernel& kernel, const Runs& runs, const Means& means);

}  // namespace tessera::check
