// Opening a registry whose files may be damaged (private to the folder).
#pragma once

#include <filesystem>
#include <string>

#include "registry/tables.h"
#include "store/lock.h"

namespace tessera::registry {

struct Opened {
  store::Database db;
  std::string note;  // what was mended, for the user
};

/// Opens, migrates and checks `file`, all under `lock`. A damaged file is copied aside as
/// FILE.damaged-TIME and a new one is made of the rows that can still be read and of the journal;
/// commits that the journal has and the database lost are repeated.
Result<Opened> open_and_mend(const std::filesystem::path& file, store::FileLock& lock);

/// Under the database's write lock: applies what the journal holds beyond the size that the
/// database knows, or rewrites a journal that is shorter. Returns how many records were repeated,
/// -1 when the journal was rewritten.
Result<int> reconcile(store::Database& db);
/// Under the write lock: the journal becomes exactly what the database holds.
Status rewrite_journal(store::Database& db);

}  // namespace tessera::registry
