// The folder that a command writes to.
#pragma once

#include <filesystem>

#include "diag/result.h"

namespace tessera::commands {

/// Makes it and tries to write there: a search must not end with results that cannot be written.
/// Error TS0033.
Status writable_output(const std::filesystem::path& folder);

}  // namespace tessera::commands
