// The command line that a source is compiled with, and the hash that names what comes out.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "toolchain/toolchain.h"

namespace tessera::toolchain {

/// The flags of every source of this language, architecture and kind of headers, for the compiler
/// that makes the kernels: no paths, and nothing that the source asks for itself. The one place
/// that names them.
std::vector<std::string> common_flags(const Source& source, Sides sides = Sides::together);

/// How these tools make the library of this source. A CUDA source says itself what it allows: it
/// defines TESSERA_SIDES_APART (include/tessera/sides.h) or TESSERA_HOST_ONLY.
Sides sides_of(const Toolchain& tools, const Source& source);

/// The compiler commands for `source` (already written to `input`), to be run one after the other;
/// the last makes the shared library `output`. What lies between is written beside it.
std::vector<std::vector<std::string>> compile_commands(const Toolchain& tools, const Source& source,
                                                       const std::filesystem::path& input,
                                                       const std::filesystem::path& output);

/// Content hash of everything that decides the binary: text, flags, compiler and CUTLASS versions,
/// and the contents of our own headers. Machine paths are left out, so equal toolchains in
/// different places share keys; host code adds the CPU's model because it is compiled with
/// -march=native.
std::string cache_key(const Toolchain& tools, const Source& source);

}  // namespace tessera::toolchain
