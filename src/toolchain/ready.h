// Whether this machine can build at all, asked once before a search instead of once a candidate.
#pragma once

#include "diag/result.h"
#include "toolchain/toolchain.h"

namespace tessera::toolchain {

/// The compiler for `language`, the C++ compiler and the headers of generated sources are there.
/// Errors: TS0301 (no compiler), TS0308 (no headers), each with how to get it.
Status ready_to_build(const Toolchain& tools, Language language);

/// Makes the folder for built kernels and writes to it. Errors: TS0305 (not writable), TS0309 (less
/// than 64 MiB free), each with what to do.
Status ready_cache(const std::filesystem::path& cache);

}  // namespace tessera::toolchain
