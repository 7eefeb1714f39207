#include "store/errors.h"

#include <cerrno>
#include <cstring>
#include <sqlite3.h>
#include <sys/resource.h>
#include <system_error>

#include "store/database.h"

namespace tessera::store {
namespace {

bool is_full(int primary, int system) {
  // A quota and a file size limit come as plain I/O errors; the errno tells them apart from a
  // broken disk.
  return primary == SQLITE_FULL || system == ENOSPC || system == EDQUOT || system == EFBIG;
}

// SQLite loses the errno of a write that a process limit refused.
bool at_size_limit(int code, const std::filesystem::path& file) {
  rlimit limit{};
  if (code != SQLITE_IOERR_WRITE || ::getrlimit(RLIMIT_FSIZE, &limit) != 0 ||
      limit.rlim_cur == RLIM_INFINITY) {
    return false;
  }
  constexpr std::uintmax_t slack = 1 << 20;  // more than one commit appends at once
  for (const char* suffix : {"", "-wal", "-journal"}) {
    std::error_code ec;
    const std::uintmax_t size = std::filesystem::file_size(file.string() + suffix, ec);
    if (!ec && size + slack > limit.rlim_cur) return true;
  }
  return false;
}

bool is_read_only(int primary, int system) {
  return primary == SQLITE_READONLY || system == EROFS || system == EACCES || system == EPERM;
}

}  // namespace

Diagnostic diagnose(sqlite3* db, int code, std::string_view what,
                    const std::filesystem::path& file) {
  const int primary = code & 0xff;
  const bool from_system = primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN;
  const int system = db != nullptr && from_system ? sqlite3_system_errno(db) : 0;
  const std::string detail = db != nullptr ? sqlite3_errmsg(db) : sqlite3_errstr(code);
  const std::string folder = file.parent_path().string();
  const auto finish = [&](Diagnostic d) {
    d.data = {{"file", file.string()}, {"sqlite", code}, {"errno", system}};
    d.found = system != 0 ? fmt::format("{} ({})", detail, std::strerror(system)) : detail;
    return d;
  };
  if (is_full(primary, system) || at_size_limit(code, file)) {
    return finish(
        fail(disk_full, "no space to {} {}", what, file.string())
            .note("nothing that was stored before is lost")
            .help("free space on the file system of {}, or run `tessera registry prune failed`",
                  folder)
            .help("or set TESSERA_HOME to a folder with space"));
  }
  if (primary == SQLITE_BUSY || primary == SQLITE_LOCKED) {
    return finish(fail(busy, "another process keeps {} locked", file.string())
                      .help("wait for the other tessera process, or end it: `fuser {}` names it",
                            file.string()));
  }
  if (primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB) {
    return finish(fail(corrupt, "{} is damaged", file.string())
                      .help("run `tessera registry list`: opening the registry mends it and keeps "
                            "the damaged file"));
  }
  if (is_read_only(primary, system)) {
    return finish(
        fail(read_only, "cannot {} {}: the place is read-only for this user", what, file.string())
            .help("make {} writable, or set TESSERA_HOME to a folder that is", folder));
  }
  if (primary == SQLITE_CANTOPEN) {
    return finish(
        fail(cannot_open, "cannot open {}", file.string())
            .help("check that {} is a folder, or set TESSERA_HOME to another place", folder));
  }
  if (primary == SQLITE_IOERR || primary == SQLITE_NOMEM || primary == SQLITE_PROTOCOL) {
    return finish(fail(io_failed, "cannot {} {}", what, file.string())
                      .help("check the file system of {} (kernel log, `df {}`)", folder, folder));
  }
  return finish(fail(bad_statement, "SQLite refused to {} {}", what, file.string()));
}

}  // namespace tessera::store
