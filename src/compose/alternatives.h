// Sets of kernels beside the one that was chosen: what an overlapping winner that was left out
// would make of the module.
#pragma once

#include <vector>

#include "compose/choose.h"

namespace tessera::composer {

struct Alternative {
  std::vector<int> chosen;  // indices into the options
  double gain_ms = 0;
  bool near = false;  // saves as much as the choice, within the spread of what they differ by
};

/// For each option that saves time and was left out for one of the chosen that it overlaps: the
/// option, with what of the chosen and then of the others is compatible with it. Each set once, the
/// one that saves most first. `noise`: relative, of the baselines, which were timed at different
/// moments.
std::vector<Alternative> alternatives(const graph::Graph& g, const std::vector<Option>& options,
                                      const Choice& choice, double noise);

}  // namespace tessera::composer
