#include "store/database.h"

#include <cerrno>
#include <set>
#include <sqlite3.h>
#include <sys/vfs.h>
#include <system_error>
#include <vector>

#include "store/errors.h"

namespace tessera::store {
namespace fs = std::filesystem;
namespace {

// Write-ahead mode needs shared memory between its users, which network file systems do not give.
bool on_network(const fs::path& file) {
  struct statfs info{};
  if (::statfs(file.parent_path().c_str(), &info) != 0) return false;
  static const std::set<long> network{
      0x6969,     0x517B,    static_cast<long>(0xFE534D42), static_cast<long>(0xFF534D42),
      0x0BD00BD0, 0x47504653};
  return network.contains(static_cast<long>(info.f_type));  // NFS, SMB, SMB2, CIFS, Lustre, GPFS
}

Status make_folder(const fs::path& file) {
  std::error_code ec;
  fs::create_directories(file.parent_path(), ec);
  if (!ec) return {};
  const bool full = ec.value() == ENOSPC || ec.value() == EDQUOT;
  const bool denied = ec.value() == EACCES || ec.value() == EROFS || ec.value() == EPERM;
  const Code& code = full ? disk_full : denied ? read_only : cannot_open;
  return error(
      fail(code, "cannot make the folder {}: {}", file.parent_path().string(), ec.message())
          .help("set TESSERA_HOME to a folder that this user can write"));
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

Statement& Statement::bind(int parameter, std::string_view text) {
  sqlite3_bind_text64(statement_.get(), parameter, text.data(), text.size(), SQLITE_TRANSIENT,
                      SQLITE_UTF8);
  return *this;
}

Statement& Statement::bind(int parameter, int64_t number) {
  sqlite3_bind_int64(statement_.get(), parameter, number);
  return *this;
}

Statement& Statement::bind(int parameter, double number) {
  sqlite3_bind_double(statement_.get(), parameter, number);
  return *this;
}

Result<bool> Statement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  sqlite3* db = sqlite3_db_handle(statement_.get());
  const char* what = sqlite3_stmt_readonly(statement_.get()) != 0 ? "read" : "write";
  return error(diagnose(db, sqlite3_extended_errcode(db), what, file_));
}

Status Statement::run() {
  while (true) {
    Result<bool> row = step();
    if (!row || !*row) {
      sqlite3_reset(statement_.get());
      if (!row) return error(std::move(row).error());
      return {};
    }
  }
}

std::string Statement::text(int column) const {
  const auto* data = sqlite3_column_text(statement_.get(), column);
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return data == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(data), size);
}

int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}
double Statement::real(int column) const {
  return sqlite3_column_double(statement_.get(), column);
}

void Database::Close::operator()(sqlite3* db) const {
  sqlite3_close_v2(db);
}

Result<Database> Database::open(const fs::path& file, const OpenOptions& options) {
  if (!options.read_only) TESSERA_CHECK(make_folder(file));
  sqlite3* raw = nullptr;
  const int flags =
      options.read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  const int code = sqlite3_open_v2(file.c_str(), &raw, flags | SQLITE_OPEN_EXRESCODE, nullptr);
  Database db(raw, file);
  if (code != SQLITE_OK) return error(diagnose(raw, code, "open", file));
  sqlite3_busy_timeout(raw, static_cast<int>(options.busy_timeout.count()));
  TESSERA_CHECK(
      db.execute("PRAGMA foreign_keys=ON; PRAGMA trusted_schema=OFF; PRAGMA synchronous=FULL"));
  // SQLite opens a file that it cannot write for reading; the first write would fail much later.
  if (!options.read_only && sqlite3_db_readonly(raw, "main") == 1) {
    return error(diagnose(raw, SQLITE_READONLY, "write", file));
  }
  if (!options.read_only) {
    const bool ahead = options.write_ahead && !on_network(file);
    TESSERA_CHECK(db.execute(ahead ? "PRAGMA journal_mode=WAL" : "PRAGMA journal_mode=DELETE"));
  }
  return db;
}

Result<Statement> Database::prepare(std::string_view sql) {
  sqlite3_stmt* raw = nullptr;
  const int code =
      sqlite3_prepare_v2(db_.get(), sql.data(), static_cast<int>(sql.size()), &raw, nullptr);
  Statement statement(raw, file_);
  if (code != SQLITE_OK) return error(diagnose(db_.get(), code, "read", file_));
  return statement;
}

Status Database::execute(std::string_view sql) {
  const std::string text(sql);
  const int code = sqlite3_exec(db_.get(), text.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return error(diagnose(db_.get(), code, "write", file_));
  return {};
}

Status Database::transaction(const std::function<Status()>& body) {
  TESSERA_CHECK(execute("BEGIN IMMEDIATE"));
  struct Rollback {
    sqlite3* db;
    ~Rollback() {
      if (sqlite3_get_autocommit(db) == 0) sqlite3_exec(db, "ROLLBACK", nullptr, nullptr, nullptr);
    }
  } rollback{db_.get()};
  TESSERA_CHECK(body());
  return execute("COMMIT");
}

Status Database::check() {
  TESSERA_TRY(statement, prepare("PRAGMA integrity_check(5)"));
  std::vector<std::string> faults;
  while (true) {
    TESSERA_TRY(row, statement.step());
    if (!row) break;
    if (statement.text(0) != "ok") faults.push_back(statement.text(0));
  }
  if (faults.empty()) return {};
  Diagnostic d = diagnose(nullptr, SQLITE_CORRUPT, "check", file_);
  d.notes = faults;
  return error(std::move(d));
}

int64_t Database::changes() const {
  return sqlite3_changes64(db_.get());
}

Status migrate(Database& db, std::span<const Migration> migrations) {
  // Reads first: a database that is up to date is opened without taking the write lock.
  const auto applied_names = [&]() -> Result<std::set<std::string>> {
    std::set<std::string> names;
    TESSERA_TRY(exists, db.prepare("SELECT 1 FROM sqlite_master WHERE name='migrations'"));
    TESSERA_TRY(present, exists.step());
    if (!present) return names;
    TESSERA_TRY(statement, db.prepare("SELECT name FROM migrations"));
    while (true) {
      TESSERA_TRY(row, statement.step());
      if (!row) return names;
      names.insert(statement.text(0));
    }
  };
  TESSERA_TRY(applied, applied_names());
  std::set<std::string> known;
  for (const Migration& m : migrations) known.emplace(m.name);
  for (const std::string& name : applied) {
    if (known.contains(name)) continue;
    return error(fail(newer_schema, "{} was written by a newer version (step `{}`)",
                      db.file().string(), name)
                     .help("update tessera, or set TESSERA_HOME to another folder"));
  }
  if (applied.size() == known.size()) return {};
  for (const Migration& m : migrations) {
    TESSERA_CHECK(db.transaction([&]() -> Status {
      TESSERA_CHECK(db.execute(
          "CREATE TABLE IF NOT EXISTS migrations(name TEXT PRIMARY KEY, applied TEXT NOT NULL)"));
      TESSERA_TRY(now, applied_names());  // another process may have been faster
      if (now.contains(std::string(m.name))) return {};
      TESSERA_CHECK(db.execute(m.sql));
      TESSERA_TRY(
          note,
          db.prepare("INSERT INTO migrations VALUES(?1, strftime('%Y-%m-%dT%H:%M:%SZ','now'))"));
      return note.bind(1, m.name).run();
    }));
  }
  return {};
}

}  // namespace tessera::store
