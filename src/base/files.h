// Files and places. Writing is atomic: a reader sees the old content or the new, never a half.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace tessera {

/// The whole file; throws std::filesystem::filesystem_error when it cannot be read.
std::string read_file(const std::filesystem::path& path);
/// Writes to a temporary file beside `path`, flushes it to the disk and renames it over `path`;
/// throws std::filesystem::filesystem_error (with the path) when the disk is full or the place is
/// not writable.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

/// Where tessera keeps what it builds: $TESSERA_HOME, else $XDG_CACHE_HOME/tessera, else
/// ~/.cache/tessera.
std::filesystem::path cache_home();
/// Where tessera keeps what it must not lose (the registry): $TESSERA_HOME, else
/// $XDG_DATA_HOME/tessera, else
/// ~/.local/share/tessera.
std::filesystem::path data_home();
/// The folder of the running executable.
std::filesystem::path executable_folder();

/// A fresh folder under the system's temporary place, removed with everything in it at the end of
/// its life.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(std::string_view prefix = "tessera");
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace tessera
