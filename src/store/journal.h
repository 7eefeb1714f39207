// A second copy of what a database holds, as checked lines of JSON in a plain file: what a damaged
// database is rebuilt from. Each line carries the hash of its content, so a torn or flipped line is
// known and skipped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "diag/result.h"

namespace tessera::store {

/// Appends records in one write, flushes them to the disk and returns the file's new size in bytes;
/// on failure the file is as before. Callers hold the database's write lock, so appends never
/// interleave.
Result<int64_t> append_records(const std::filesystem::path& journal,
                               const std::vector<Json>& records);
/// Replaces the whole file in one step and returns its size in bytes.
Result<int64_t> rewrite_records(const std::filesystem::path& journal,
                                const std::vector<Json>& records);

struct Records {
  std::vector<Json> records;  // in order
  int damaged = 0;            // lines that do not match their hash
};
/// What lies behind byte `from`; empty when there is no such file.
Result<Records> read_records(const std::filesystem::path& journal, int64_t from = 0);
/// Its size in bytes, 0 when there is none.
int64_t size_of_records(const std::filesystem::path& journal);

}  // namespace tessera::store
