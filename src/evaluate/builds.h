// Many builds at once.
#pragma once

#include <atomic>
#include <optional>
#include <vector>

#include "evaluate/build_farm.h"
#include "evaluate/evaluate.h"

namespace tessera::evaluate {

/// Builds the candidates named by `which`; built[i] is filled for candidate i. One trial a
/// candidate, measured when it is usable; skipped when `stop` was set before it was built, or it
/// was not ready at `deadline` and another was.
std::vector<tune::Trial> build_all(const std::vector<kernel::Candidate>& candidates,
                                   const std::vector<int>& which, BuildFarm& farm,
                                   const std::atomic<bool>& stop, BuildFarm::Deadline deadline,
                                   std::vector<std::optional<toolchain::Built>>& built);

}  // namespace tessera::evaluate
