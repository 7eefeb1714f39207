// Many builds at once.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <vector>

#include "evaluate/evaluate.h"

namespace tessera::evaluate {

/// Builds the candidates named by `which` with up to `parallel` compilers at once; built[i] is
/// filled for candidate i. One trial a candidate, measured when it is usable; skipped when `stop`
/// was set before its turn.
std::vector<tune::Trial> build_all(const std::vector<realize::Candidate>& candidates,
                                   const std::vector<int>& which, const Options& options,
                                   const std::atomic<bool>& stop,
                                   std::vector<std::optional<toolchain::Built>>& built);

}  // namespace tessera::evaluate
