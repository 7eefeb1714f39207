// What `ptxas -v` says about a build, read from the compiler's log.
#pragma once

#include <string_view>

#include "base/json.h"

namespace tessera::toolchain {

/// {"registers": most of any kernel, "spill_bytes": stores + loads, most of any kernel,
/// "shared_bytes": static, most, "stack_bytes": most, "serialized_wgmma": bool, "warnings": [lines
/// with a C75xx code, each once]}; fields appear only when the log has them. Dynamic shared memory
/// is not in the log: the kernel's own describe() states it.
Json parse_ptxas(std::string_view log);

}  // namespace tessera::toolchain
