// A lock file beside a database: everyone who has the database open holds it shared; who moves the
// file holds it alone. The kernel drops it with its process, so a killed process never leaves one
// behind.
#pragma once

#include <chrono>
#include <filesystem>

#include "diag/result.h"

namespace tessera::store {

class FileLock {
 public:
  /// Creates the file (and its folder) and takes it shared.
  static Result<FileLock> shared(const std::filesystem::path& file);
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

  /// Lets go and takes it alone; `store.busy` when others still hold it after `limit`. What was
  /// seen under the shared lock may have changed by then.
  Status exclusive(std::chrono::milliseconds limit);
  /// Back to shared.
  Status share();

 private:
  FileLock(int fd, std::filesystem::path file) : fd_(fd), file_(std::move(file)) {}
  Status take(int operation, std::chrono::milliseconds limit);
  int fd_ = -1;
  std::filesystem::path file_;
};

}  // namespace tessera::store
