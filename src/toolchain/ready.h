// Whether this machine can build at all, asked once before a search instead of once a candidate.
#pragma once

#include <filesystem>
#include <string>

#include "diag/result.h"
#include "toolchain/toolchain.h"

namespace tessera::toolchain {

/// The compiler for `language`, the C++ compiler and the headers of generated sources are there.
/// Errors: TS0301 (no compiler), TS0308 (no headers), each with how to get it.
Status ready_to_build(const Toolchain& tools, Language language);

/// The compilers for `language` are there, the C++ compiler always. Error: TS0301.
Status ready_compilers(const Toolchain& tools, Language language);

/// TS0305: the kernel cache cannot be written, because of `why`.
Diagnostic cache_not_writable(const std::filesystem::path& cache, const std::string& why);

/// Makes the folder for built kernels and writes to it. Errors: TS0305 (not writable), TS0309 (less
/// than 64 MiB free), each with what to do.
Status ready_cache(const std::filesystem::path& cache);

}  // namespace tessera::toolchain
