// SQLite's result codes as diagnostics (private to the folder).
#pragma once

#include <filesystem>
#include <string_view>

#include "diag/result.h"

struct sqlite3;

namespace tessera::store {

/// The last error of `db` (or, when db is null, `code` alone) while doing `what` ("open", "write",
/// ...).
Diagnostic diagnose(sqlite3* db, int code, std::string_view what,
                    const std::filesystem::path& file);

}  // namespace tessera::store
