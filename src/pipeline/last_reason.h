// What of the kernels is placed once the whole module has decided, and the last reason of the rest.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "pipeline/stages.h"

namespace tessera::pipeline {

/// Places these options. `why`: of those that were chosen and go without being displaced by one of
/// these. `timed`: options that were in a plan which the whole module was timed with. What was left
/// out for a kernel that is not placed itself says what it came to, so that nobody is sent to a
/// kernel that runs nowhere.
void settle_on(Chosen& chosen, const std::vector<int>& these, const std::string& why,
               const std::set<int>& timed);

}  // namespace tessera::pipeline
