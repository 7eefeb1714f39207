// CuTe's headers with a few lines replaced (tessera_cutlass/lean.h), for compilers that read them
// in front of CUTLASS' own.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "toolchain/toolchain.h"

namespace tessera::toolchain {

/// Every `return EXPRESSION;` as TESSERA_RETURN(EXPRESSION), but for those that capture something,
/// are the whole body of an `if` without braces, or name a variable.
std::string with_lean_returns(const std::string& header);

/// The columns of wgmma that a source may use: CUTLASS takes the largest that divide a tile's, and
/// every number in the text may be a tile's, half of one or twice one.
std::set<int> wgmma_columns(const std::string& source);

/// A header of wgmma's shapes in which those of other columns are only declared, which is all that
/// the selection among them wants.
std::string with_wgmma_shapes(const std::string& header, const std::set<int>& columns);

/// The changed headers by their paths below `include`, CUTLASS' folder of headers, for the text of
/// a source; `extended`: with all of wgmma's shapes. Empty where a line is not as expected, as with
/// another version of CUTLASS: its own are then read.
std::map<std::string, std::string> lean_headers(const std::filesystem::path& include,
                                                const std::string& source, bool extended);

/// Where the compilers look for them that write `output` (a library or a cubin beside it). An
/// absent folder is one that they skip.
std::filesystem::path lean_folder(const std::filesystem::path& output);

/// Puts them there.
void write_lean_headers(const std::filesystem::path& include, const Source& source,
                        const std::filesystem::path& output);

/// Changes with them, and includes what they include of ours: for cache keys.
std::string lean_headers_version();

}  // namespace tessera::toolchain
