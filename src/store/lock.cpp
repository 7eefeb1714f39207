#include "store/lock.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <thread>
#include <unistd.h>

#include "store/database.h"

namespace tessera::store {
namespace fs = std::filesystem;

Result<FileLock> FileLock::shared(const fs::path& file) {
  std::error_code ec;
  fs::create_directories(file.parent_path(), ec);
  const int fd = ec ? -1 : ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) {
    const int code = ec ? ec.value() : errno;
    const bool full = code == ENOSPC || code == EDQUOT;
    const bool denied = code == EACCES || code == EROFS || code == EPERM;
    return error(fail(full     ? disk_full
                      : denied ? read_only
                               : cannot_open,
                      "cannot create {}: {}", file.string(), std::strerror(code))
                     .help("set TESSERA_HOME to a folder with space that this user can write")
                     .with("errno", code));
  }
  FileLock lock(fd, file);
  TESSERA_CHECK(lock.share());
  return lock;
}

FileLock::FileLock(FileLock&& other) noexcept : fd_(other.fd_), file_(std::move(other.file_)) {
  other.fd_ = -1;
}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

Status FileLock::exclusive(std::chrono::milliseconds limit) {
  ::flock(fd_, LOCK_UN);  // two processes that upgrade at once would wait for each other
  return take(LOCK_EX, limit);
}

Status FileLock::share() {
  return take(LOCK_SH, std::chrono::seconds(60));
}

Status FileLock::take(int operation, std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (::flock(fd_, operation | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return error(fail(io_failed, "cannot lock {}: {}", file_.string(), std::strerror(errno))
                       .help("set TESSERA_HOME to a local file system"));
    }
    if (std::chrono::steady_clock::now() > deadline) {
      return error(fail(busy, "another process keeps {} locked", file_.string())
                       .help("wait for the other tessera process, or end it: `fuser {}` names it",
                             file_.string()));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return {};
}

}  // namespace tessera::store
