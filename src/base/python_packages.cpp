#include "base/python_packages.h"

#include <algorithm>
#include <cstdlib>

#include "base/text.h"

namespace tessera {
namespace fs = std::filesystem;
namespace {

std::string environment(const char* name) {
  const char* v = std::getenv(name);
  return v != nullptr ? v : "";
}

}  // namespace

std::vector<fs::path> packages_below(const fs::path& root) {
  std::vector<fs::path> out;
  std::error_code ignored;
  for (const char* lib : {"lib", "lib64", "local/lib"}) {
    std::vector<fs::path> versions;
    for (const fs::directory_entry& e : fs::directory_iterator(root / lib, ignored))
      if (e.path().filename().string().starts_with("python3")) versions.push_back(e.path());
    std::sort(versions.begin(), versions.end());
    for (const char* kind : {"site-packages", "dist-packages"})
      for (const fs::path& version : versions)
        if (fs::is_directory(version / kind, ignored)) out.push_back(version / kind);
  }
  return out;
}

std::vector<fs::path> python_packages(const fs::path& python) {
  std::vector<fs::path> out;
  for (const std::string& folder : split(environment("PYTHONPATH"), ':'))
    if (!folder.empty()) out.emplace_back(folder);
  std::vector<fs::path> roots;
  if (python.has_parent_path()) roots.push_back(python.parent_path().parent_path());
  if (const std::string home = environment("HOME"); !home.empty())
    roots.push_back(fs::path(home) / ".local");
  for (const fs::path& root : roots)
    for (fs::path& folder : packages_below(root)) out.push_back(std::move(folder));
  return out;
}

}  // namespace tessera
