// Facts of this machine that decide what a compiler makes of a source, and the programs beside it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "toolchain/toolchain.h"

namespace tessera::toolchain {

/// The model name of /proc/cpuinfo with a hash of its flags: what -march=native depends on.
std::string cpu_model();

/// One hash over the contents of all our own headers below the folder.
std::string own_headers_hash(const std::filesystem::path& folder);

/// One hash over those of our own headers that `text` includes, directly or through each other.
std::string included_headers_hash(const std::filesystem::path& folder, const std::string& text);

/// A program of the CUDA toolkit. nvcc's own neighbour comes first, since it knows what this nvcc
/// makes; then PATH.
std::optional<std::filesystem::path> beside_nvcc(const Toolchain& tools, const std::string& name);

}  // namespace tessera::toolchain
