#include "base/files.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <sstream>
#include <system_error>
#include <unistd.h>

namespace tessera {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void throw_errno(const char* what, const fs::path& path) {
  throw fs::filesystem_error(what, path, std::error_code(errno, std::generic_category()));
}

fs::path home_from(const char* xdg, const char* fallback) {
  if (const char* own = std::getenv("TESSERA_HOME"); own != nullptr && *own != 0) return own;
  if (const char* base = std::getenv(xdg); base != nullptr && *base != 0)
    return fs::path(base) / "tessera";
  const char* home = std::getenv("HOME");
  return fs::path(home != nullptr ? home : "/tmp") / fallback / "tessera";
}

}  // namespace

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw_errno("cannot read", path);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

void write_file_atomically(const fs::path& path, std::string_view content) {
  static std::atomic<unsigned> counter{0};
  if (path.has_parent_path()) fs::create_directories(path.parent_path());
  const fs::path temporary = fmt::format("{}.{}.{}.tmp", path.string(), ::getpid(), counter++);
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) throw_errno("cannot create", temporary);
  const auto give_up = [&](const char* what) {
    const int saved = errno;
    ::close(fd);
    ::unlink(temporary.c_str());
    errno = saved;
    throw_errno(what, path);
  };
  while (!content.empty()) {
    const ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) give_up("cannot write");
    content.remove_prefix(static_cast<std::size_t>(n));
  }
  if (::fsync(fd) != 0) give_up("cannot flush");
  ::close(fd);
  fs::rename(temporary, path);
}

fs::path cache_home() {
  return home_from("XDG_CACHE_HOME", ".cache");
}
fs::path data_home() {
  return home_from("XDG_DATA_HOME", ".local/share");
}

fs::path executable_folder() {
  return fs::read_symlink("/proc/self/exe").parent_path();
}

TemporaryFolder::TemporaryFolder(std::string_view prefix) {
  std::string pattern = (fs::temp_directory_path() / fmt::format("{}-XXXXXX", prefix)).string();
  if (::mkdtemp(pattern.data()) == nullptr)
    throw_errno("cannot create a temporary folder", pattern);
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace tessera
