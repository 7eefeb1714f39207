// SQLite behind a small interface: statements that close themselves, transactions that roll back,
// errors that say what to do. Nothing outside this folder includes sqlite3.h.
//
// A database is in write-ahead mode with full syncs: a commit that returned is on the disk,
// whatever happens to the process afterwards. Writers wait for each other (30 s) before they give
// up with `store.busy`.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "diag/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace tessera::store {

inline constexpr Code cannot_open{"TS0621", "store.cannot_open"};
inline constexpr Code disk_full{"TS0622", "store.disk_full"};
inline constexpr Code read_only{"TS0623", "store.read_only"};
inline constexpr Code busy{"TS0624", "store.busy"};
inline constexpr Code corrupt{"TS0625", "store.corrupt"};
inline constexpr Code newer_schema{"TS0626", "store.newer_schema"};
inline constexpr Code io_failed{"TS0627", "store.io_failed"};
inline constexpr Code bad_statement{"TS0960", "store.bad_statement"};  // our own fault

/// One prepared statement; must not outlive its Database. Parameters and columns count from 1 and
/// from 0, as in SQLite.
class Statement {
 public:
  Statement(Statement&&) noexcept = default;
  Statement& operator=(Statement&&) noexcept = default;

  Statement& bind(int parameter, std::string_view text);
  Statement& bind(int parameter, int64_t number);
  Statement& bind(int parameter, double number);
  /// True when there is a row to read, false at the end.
  Result<bool> step();
  /// Runs to the end and resets, for statements without rows; parameters stay bound.
  Status run();

  [[nodiscard]] std::string text(int column) const;
  [[nodiscard]] int64_t integer(int column) const;
  [[nodiscard]] double real(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  Statement(sqlite3_stmt* statement, std::filesystem::path file)
      : statement_(statement), file_(std::move(file)) {}
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  std::filesystem::path file_;
};

struct OpenOptions {
  std::chrono::milliseconds busy_timeout{30000};
  /// Opens an existing file and never writes it (salvage reads the damaged copy this way).
  bool read_only = false;
  /// False keeps everything in one file (a database that is about to be renamed).
  bool write_ahead = true;
};

class Database {
 public:
  /// Opens or creates the file and its folders.
  static Result<Database> open(const std::filesystem::path& file, const OpenOptions& options = {});
  Database(Database&&) noexcept = default;
  Database& operator=(Database&&) noexcept = default;

  Result<Statement> prepare(std::string_view sql);
  /// One or more statements without parameters.
  Status execute(std::string_view sql);
  /// Takes the write lock, runs `body`, commits; an error of `body` or of the commit rolls
  /// everything back.
  Status transaction(const std::function<Status()>& body);
  /// Walks every page; `store.corrupt` names the first faults.
  Status check();
  /// Rows changed by the last statement.
  [[nodiscard]] int64_t changes() const;
  [[nodiscard]] const std::filesystem::path& file() const { return file_; }

 private:
  struct Close {
    void operator()(sqlite3* db) const;
  };
  Database(sqlite3* db, std::filesystem::path file) : db_(db), file_(std::move(file)) {}
  std::unique_ptr<sqlite3, Close> db_;
  std::filesystem::path file_;
};

/// One step of a schema's history; a published one never changes.
struct Migration {
  std::string_view name;  // "0001_entries"
  std::string_view sql;
};

/// Applies what is not applied yet, in order, each in a transaction of its own; names are kept in
/// the table `migrations`. A file with a name that is not in the list was written by a newer
/// version: `store.newer_schema`.
Status migrate(Database& db, std::span<const Migration> migrations);

}  // namespace tessera::store
