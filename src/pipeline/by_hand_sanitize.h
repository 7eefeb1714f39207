// What the sanitizers of this machine say of a source by hand.
#pragma once

#include <filesystem>
#include <vector>

#include "pipeline/by_hand.h"
#include "pipeline/stages.h"
#include "toolchain/sanitize.h"

#include "kernel/winner.h"

namespace tessera::pipeline {

/// By the sanitizers of the compiler on the host, by compute-sanitizer on a GPU, where `library` is
/// what was built of it. There it is built once more where a finding is to get its line: lines of
/// optimized code cost nothing but the build.
toolchain::Sanitized sanitizer_says(Session& s, const ByHand& given, const kernel::Candidate& c,
                                    const std::filesystem::path& library,
                                    const std::vector<toolchain::Storage>& tensors);

}  // namespace tessera::pipeline
