#include "store/journal.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "store/database.h"

namespace tessera::store {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t hash_digits = 32;

std::string line_of(const Json& record) {
  const std::string content = record.dump(-1, ' ', false, Json::error_handler_t::replace);
  return content_hash(content) + " " + content + "\n";
}

Diagnostic cannot_write(const fs::path& journal, int code) {
  const bool full = code == ENOSPC || code == EDQUOT || code == EFBIG;
  const bool denied = code == EACCES || code == EROFS || code == EPERM;
  const std::string folder = journal.parent_path().string();
  return fail(full     ? disk_full
              : denied ? read_only
                       : io_failed,
              "cannot write {}: {}", journal.string(), std::strerror(code))
      .note("nothing that was stored before is lost")
      .help("free space on, or get write access to, {}; or set TESSERA_HOME to another folder",
            folder)
      .with("errno", code);
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

Result<int64_t> append_records(const fs::path& journal, const std::vector<Json>& records) {
  const int fd = ::open(journal.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return error(cannot_write(journal, errno));
  struct stat before{};
  char last = '\n';
  int failure = 0;
  if (::fstat(fd, &before) != 0) failure = errno;
  // A process that was killed in the middle of a line leaves no newline; start on a line of our
  // own.
  if (before.st_size > 0 && ::pread(fd, &last, 1, before.st_size - 1) != 1) last = 0;
  std::string text = last == '\n' ? "" : "\n";
  for (const Json& record : records) text += line_of(record);
  if (failure == 0 && (!write_all(fd, text) || ::fsync(fd) != 0)) failure = errno;
  if (failure != 0 && ::ftruncate(fd, before.st_size) != 0) {
    // The torn line stays; readers skip it by its hash.
  }
  ::close(fd);
  if (failure != 0) return error(cannot_write(journal, failure));
  return static_cast<int64_t>(before.st_size) + static_cast<int64_t>(text.size());
}

Result<int64_t> rewrite_records(const fs::path& journal, const std::vector<Json>& records) {
  std::string text;
  for (const Json& record : records) text += line_of(record);
  try {
    write_file_atomically(journal, text);
  } catch (const fs::filesystem_error& e) {
    return error(cannot_write(journal, e.code().value()));
  }
  return static_cast<int64_t>(text.size());
}

Result<Records> read_records(const fs::path& journal, int64_t from) {
  Records out;
  std::error_code ec;
  if (!fs::exists(journal, ec)) return out;
  std::string text;
  try {
    text = read_file(journal);
  } catch (const fs::filesystem_error& e) {
    return error(fail(cannot_open, "cannot read {}: {}", journal.string(), e.code().message()));
  }
  for (std::size_t at = static_cast<std::size_t>(from); at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    if (line.empty()) continue;
    const bool framed = line.size() > hash_digits + 1 && line[hash_digits] == ' ';
    const std::string_view content = framed ? line.substr(hash_digits + 1) : std::string_view();
    Json record = framed && content_hash(content) == line.substr(0, hash_digits)
                      ? try_parse_json(content)
                      : Json(Json::value_t::discarded);
    if (record.is_discarded()) {
      ++out.damaged;
    } else {
      out.records.push_back(std::move(record));
    }
  }
  return out;
}

int64_t size_of_records(const fs::path& journal) {
  std::error_code ec;
  const auto size = fs::file_size(journal, ec);
  return ec ? 0 : static_cast<int64_t>(size);
}

}  // namespace tessera::store
