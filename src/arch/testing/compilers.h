// Where the tests of instructions find NVIDIA's assembler and CuTe's headers. A test that lacks
// them is skipped, and says what is missing.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/process.h"
#include "base/source_folder.h"

namespace tessera::arch::testing {

namespace fs = std::filesystem;

inline std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

/// The site-packages folders of $TESSERA_PYTHON's environment, else of the checkout's own.
inline std::vector<fs::path> site_packages() {
  const std::string python = environment("TESSERA_PYTHON");
  const fs::path prefix = python.empty() ? fs::path(source_folder()) / ".venv"
                                         : fs::path(python).parent_path().parent_path();
  std::vector<fs::path> out;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(prefix / "lib", none))
    out.push_back(entry.path() / "site-packages");
  return out;
}

/// The toolkit's folder: that of nvcc on the PATH, /usr/local/cuda, or of the Python packages.
/// Empty when there is none.
inline fs::path cuda_root() {
  std::error_code none;
  std::vector<fs::path> places;
  if (const auto nvcc = find_program("nvcc"))
    places.push_back(fs::canonical(*nvcc, none).parent_path().parent_path());
  places.emplace_back("/usr/local/cuda");
  for (const fs::path& site : site_packages()) places.push_back(site / "nvidia/cu13");
  for (const fs::path& place : places)
    if (fs::exists(place / "bin/ptxas", none)) return place;
  return {};
}

/// The folder of cute/tensor.hpp; empty when there is none.
inline fs::path cutlass_include() {
  std::vector<fs::path> places;
  if (const std::string own = environment("TESSERA_CUTLASS_DIR"); !own.empty())
    places = {own, fs::path(own) / "source"};
  else
    for (const fs::path& site : site_packages()) places.push_back(site / "cutlass_library/source");
  std::error_code none;
  for (const fs::path& place : places)
    if (fs::exists(place / "include/cute/tensor.hpp", none)) return place / "include";
  return {};
}

}  // namespace tessera::arch::testing
