#include "registry/mend.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "registry/rank.h"
#include "store/journal.h"

namespace tessera::registry {
namespace fs = std::filesystem;
namespace {

using namespace std::chrono_literals;

fs::path with(const fs::path& file, std::string_view suffix) {
  return file.string() + std::string(suffix);
}

void flush_folder(const fs::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

// A mended database waits under this name until the damaged one and its write-ahead log are gone;
// an interrupted mending goes on from there.
fs::path mended_name(const fs::path& file) {
  return with(file, ".mended");
}

void put_in_place(const fs::path& file) {
  fs::remove(with(file, "-wal"));
  fs::remove(with(file, "-shm"));
  fs::rename(mended_name(file), file);
  flush_folder(file.parent_path());
}

// The damaged files, copied under a name of their own; "" when there is none.
std::string set_aside(const fs::path& file) {
  if (!fs::exists(file)) return "";
  std::string stem = with(file, ".damaged-" + replace_all(now_utc(), ":", ""));
  for (int i = 2; fs::exists(stem); ++i)
    stem = with(file, fmt::format(".damaged-{}-{}", replace_all(now_utc(), ":", ""), i));
  fs::copy_file(file, stem);
  if (fs::exists(with(file, "-wal"))) fs::copy_file(with(file, "-wal"), with(stem, "-wal"));
  const fs::path journal = journal_of(file);
  if (fs::exists(journal))
    fs::copy_file(journal, with(stem, ".copy.jsonl"), fs::copy_options::overwrite_existing);
  return stem;
}

// Read from a scratch copy: even reading a write-ahead database may touch its files, and the one
// set aside stays as found.
Rows rows_of(const fs::path& damaged, const fs::path& scratch) {
  if (damaged.empty()) return {};
  fs::copy_file(damaged, scratch, fs::copy_options::overwrite_existing);
  if (fs::exists(with(damaged, "-wal"))) {
    fs::copy_file(with(damaged, "-wal"), with(scratch, "-wal"),
                  fs::copy_options::overwrite_existing);
  }
  Rows rows;
  {
    auto db = store::Database::open(scratch);
    if (db) {
      rows = readable_rows(*db);
    } else {
      rows.fault = db.error().found;
    }
  }
  for (const char* suffix : {"", "-wal", "-shm"}) fs::remove(with(scratch, suffix));
  return rows;
}

Result<int64_t> count(store::Database& db, std::string_view table) {
  TESSERA_TRY(statement, db.prepare(fmt::format("SELECT count(*) FROM {}", table)));
  TESSERA_TRY(row, statement.step());
  return row ? statement.integer(0) : int64_t{0};
}

// Builds FILE.mended of everything that can be read. The caller holds the lock alone.
Result<std::string> rebuild(const fs::path& file, const std::string& why) {
  const std::string aside = set_aside(file);
  const Rows rows = rows_of(aside, with(file, ".scratch"));
  TESSERA_TRY(journal, store::read_records(journal_of(file)));
  const fs::path fresh = with(file, ".mending");
  for (const char* suffix : {"", "-journal", "-wal", "-shm"}) fs::remove(with(fresh, suffix));
  int unreadable = 0;
  std::string summary;
  {
    TESSERA_TRY(db, store::Database::open(fresh, {.write_ahead = false}));
    TESSERA_CHECK(store::migrate(db, migrations()));
    TESSERA_CHECK(db.transaction([&]() -> Status {
      for (const std::vector<Json>* records : {&std::as_const(journal.records), &rows.records}) {
        for (const Json& record : *records) {
          const auto done = apply(db, record);
          if (!done && done.error().code.starts_with("TS062")) return error(done.error());
          if (!done) ++unreadable;
        }
      }
      TESSERA_TRY(entries, count(db, "entries"));
      TESSERA_TRY(trials, count(db, "trials"));
      summary = fmt::format(
          "{} entries and {} trials were saved ({} records from its own pages, {} from its copy)",
          entries, trials, rows.records.size(), journal.records.size());
      // The new journal is written under the final name, before the database that counts on it.
      const Rows all = readable_rows(db);
      TESSERA_TRY(bytes, store::rewrite_records(journal_of(file), all.records));
      return set_journal_size(db, bytes);
    }));
  }
  fs::rename(fresh, mended_name(file));
  flush_folder(file.parent_path());
  put_in_place(file);
  std::string note = fmt::format("{}: {}. {}", file.string(), why, summary);
  if (const int lost = rows.damaged + journal.damaged + unreadable; lost > 0) {
    note += fmt::format(
        "; {} damaged rows or lines were left out unless their other copy was whole", lost);
  }
  if (!aside.empty()) note += fmt::format("; the damaged file is kept as {}", aside);
  return note;
}

struct Health {
  std::optional<store::Database> db;
  std::string fault;  // why it must be rebuilt; "" when it is whole
};

Result<Health> examine(const fs::path& file) {
  if (!fs::exists(file)) {
    Health h;
    if (store::size_of_records(journal_of(file)) > 0) h.fault = "the file was missing";
    if (!h.fault.empty()) return h;
  }
  Health h;
  const auto damaged = [&](const Diagnostic& d) -> Result<Health> {
    if (d.code != store::corrupt.id && d.code != store::bad_statement.id) return error(d);
    Health sick;
    sick.fault = "the file was damaged (" + (d.notes.empty() ? d.found : d.notes.front()) + ")";
    return sick;
  };
  auto db = store::Database::open(file);
  if (!db) return damaged(db.error());
  if (auto status = store::migrate(*db, migrations()); !status) return damaged(status.error());
  if (auto status = db->check(); !status) return damaged(status.error());
  const Rows rows = readable_rows(*db);
  if (rows.damaged > 0) h.fault = fmt::format("{} rows did not match their hash", rows.damaged);
  if (!rows.fault.empty()) h.fault = "the file was damaged (" + rows.fault + ")";
  if (h.fault.empty()) h.db = std::move(*db);
  return h;
}

Result<std::string> catch_up(store::Database& db) {
  TESSERA_TRY(known, journal_size(db));
  if (known == store::size_of_records(journal_of(db.file()))) return std::string();
  int repeated = 0;
  TESSERA_CHECK(db.transaction([&]() -> Status {
    TESSERA_TRY(n, reconcile(db));
    repeated = n;
    return {};
  }));
  if (repeated > 0)
    return fmt::format("{}: {} interrupted writes were completed", db.file().string(), repeated);
  if (repeated < 0)
    return fmt::format("{}: its copy was short and was written again", db.file().string());
  return std::string();
}

Result<Opened> open_guarded(const fs::path& file, store::FileLock& lock) {
  std::string note;
  if (fs::exists(mended_name(file))) {
    TESSERA_CHECK(lock.exclusive(10s));
    if (fs::exists(mended_name(file))) put_in_place(file);
    TESSERA_CHECK(lock.share());
  }
  TESSERA_TRY(health, examine(file));
  if (!health.db) {
    TESSERA_CHECK(lock.exclusive(10s));
    TESSERA_TRY(again, examine(file));  // another process may have mended it meanwhile
    if (!again.db) {
      TESSERA_TRY(told, rebuild(file, again.fault));
      note = told;
      TESSERA_TRY(mended, examine(file));
      if (!mended.db) {
        return error(
            fail(store::corrupt, "{} could not be mended: {}", file.string(), mended.fault)
                .note("{}", note)
                .help("move the file away and import a copy: `tessera registry import FILE.json`"));
      }
      again = std::move(mended);
    }
    health = std::move(again);
    TESSERA_CHECK(lock.share());
  }
  TESSERA_TRY(caught_up, catch_up(*health.db));
  if (!caught_up.empty()) note += (note.empty() ? "" : "\n") + caught_up;
  return Opened{std::move(*health.db), note};
}

}  // namespace

Result<Opened> open_and_mend(const fs::path& file, store::FileLock& lock) {
  try {
    return open_guarded(file, lock);
  } catch (const fs::filesystem_error& e) {
    const bool full =
        e.code().value() == ENOSPC || e.code().value() == EDQUOT || e.code().value() == EFBIG;
    return error(fail(full ? store::disk_full : store::io_failed, "cannot mend {}: {}",
                      file.string(), e.what())
                     .note("the damaged file is still in its place")
                     .help("make space or get write access in {}, then run the command again",
                           file.parent_path().string()));
  }
}

Status rewrite_journal(store::Database& db) {
  const Rows rows = readable_rows(db);
  TESSERA_TRY(bytes, store::rewrite_records(journal_of(db.file()), rows.records));
  return set_journal_size(db, bytes);
}

Result<int> reconcile(store::Database& db) {
  const fs::path journal = journal_of(db.file());
  TESSERA_TRY(known, journal_size(db));
  const int64_t actual = store::size_of_records(journal);
  if (actual == known) return 0;
  if (actual < known) {
    TESSERA_CHECK(rewrite_journal(db));
    return -1;
  }
  TESSERA_TRY(tail, store::read_records(journal, known));
  int repeated = 0;
  for (const Json& record : tail.records) {
    TESSERA_TRY(changed, apply(db, record));
    repeated += changed ? 1 : 0;
  }
  TESSERA_CHECK(set_journal_size(db, actual));
  return repeated;
}

}  // namespace tessera::registry
