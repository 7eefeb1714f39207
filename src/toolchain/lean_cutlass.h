// CuTe's headers with a few lines replaced (tessera_cutlass/lean.h), for compilers that read them
// in front of CUTLASS' own.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace tessera::toolchain {

/// Every `return EXPRESSION;` as TESSERA_RETURN(EXPRESSION), but for those that capture something,
/// are the whole body of an `if` without braces, or name a variable.
std::string with_lean_returns(const std::string& header);

/// The changed headers by their paths below `include`, CUTLASS' folder of headers. Empty where a
/// line is not as expected, as with another version of CUTLASS: its own are then read.
std::map<std::string, std::string> lean_headers(const std::filesystem::path& include);

/// Where the compilers look for them that write `output` (a library or a cubin beside it). An
/// absent folder is one that they skip.
std::filesystem::path lean_folder(const std::filesystem::path& output);

/// Puts them there.
void write_lean_headers(const std::filesystem::path& include, const std::filesystem::path& output);

/// Changes with them, and includes what they include of ours: for cache keys.
std::string lean_headers_version();

}  // namespace tessera::toolchain
