// The registry's tables and what one record does to them (private to the folder).
//
// Every change is a record, {"what": "entry" | "trial" | "settle" | "wrong" |
// "tried", ...}. A record is applied to the
// database and appended to the journal in one transaction, and the database keeps the journal's
// size; so each can be brought up to the other.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "registry/registry.h"
#include "store/database.h"

namespace tessera::registry {

std::span<const store::Migration> migrations();
std::filesystem::path journal_of(const std::filesystem::path& file);

Json entry_record(const Entry& e);
Json trial_record(const std::string& key_hash, const std::string& toolchain,
                  const std::string& label, const Json& trial);
Json settle_record(const std::string& key_hash, const std::string& toolchain);
Json tried_record(const std::string& key_hash, const std::string& toolchain);
Json wrong_record(const std::string& key_hash, const std::string& toolchain, const Wrong& wrong);

/// True when the record changed something. Unknown records are a `registry.bad_entry`.
Result<bool> apply(store::Database& db, const Json& record);

/// In the order in which they were noted; also those of before the toolchain was written down.
Result<std::vector<Json>> trials_of(store::Database& db, const std::string& key_hash,
                                    const std::string& toolchain);

/// Rows whose content matches its hash; `damaged` counts the others, and a page that cannot be read
/// ends the scan from either side.
struct Rows {
  std::vector<Json> records;  // entries first, then trials in their order
  int damaged = 0;
  std::string fault;  // SQLite's words on the first unreadable page
};
Rows readable_rows(store::Database& db);

Result<int64_t> journal_size(store::Database& db);
Status set_journal_size(store::Database& db, int64_t bytes);

}  // namespace tessera::registry
