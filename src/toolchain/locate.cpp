#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <regex>

#include "base/files.h"
#include "base/process.h"
#include "base/python_packages.h"
#include "base/text.h"
#include "toolchain/machine.h"
#include "toolchain/toolchain.h"

namespace tessera::toolchain {
namespace fs = std::filesystem;
namespace {

std::string environment(const char* name) {
  const char* v = std::getenv(name);
  return v != nullptr ? v : "";
}

bool is_program(const fs::path& p) {
  std::error_code ignored;
  return !p.empty() && fs::is_regular_file(p, ignored);
}

// nvcc of the packages nvidia-cuda-nvcc, with the headers and libraries of nvidia-cuda-cccl and
// -runtime. CUDA 13 packages share one folder nvidia/cu13; those of CUDA 12 have one folder each.
void take_nvcc_from_packages(Toolchain& t, const std::vector<fs::path>& sites) {
  for (const fs::path& site : sites) {
    for (const char* base : {"nvidia/cu13", "nvidia/cuda_nvcc"}) {
      if (!is_program(site / base / "bin/nvcc")) continue;
      t.nvcc = site / base / "bin/nvcc";
      for (const char* part :
           {"nvidia/cu13", "nvidia/cuda_nvcc", "nvidia/cuda_cccl", "nvidia/cuda_runtime"}) {
        const fs::path folder = site / part;
        if (fs::is_directory(folder / "include")) t.cuda_includes.push_back(folder / "include");
        if (fs::is_directory(folder / "include/cccl"))
          t.cuda_includes.push_back(folder / "include/cccl");
        if (fs::is_directory(folder / "lib")) t.cuda_libraries.push_back(folder / "lib");
      }
      return;
    }
  }
}

void find_nvcc(Toolchain& t, const std::vector<fs::path>& sites) {
  if (const std::string own = environment("TESSERA_NVCC"); !own.empty()) {
    // A wrong override must not be papered over by another compiler: it stays empty.
    if (is_program(own)) t.nvcc = own;
  } else if (const auto on_path = find_program("nvcc")) {
    t.nvcc = *on_path;
  } else if (is_program("/usr/local/cuda/bin/nvcc")) {
    t.nvcc = "/usr/local/cuda/bin/nvcc";
  } else {
    take_nvcc_from_packages(t, sites);
  }
}

// What the C++ compiler needs to read a host side without nvcc: the runtime's headers and its
// static library, of a toolkit or of packages, and a runtime that loads a cubin (CUDA 12.8).
void find_host_side(Toolchain& t) {
  if (t.nvcc.empty()) return;
  if (t.cxx.empty() || t.cxx_version.find("clang") != std::string::npos) {
    t.together_because = "the C++ compiler is not g++";
    return;
  }
  std::smatch m;
  if (!std::regex_search(t.nvcc_version, m, std::regex("([0-9]+)\\.([0-9]+)")) ||
      std::stoi(m[1]) * 100 + std::stoi(m[2]) < 1208) {
    t.together_because = "its runtime cannot load a cubin, CUDA 12.8 can";
    return;
  }
  std::error_code ignored;
  const fs::path root = fs::canonical(t.nvcc, ignored).parent_path().parent_path();
  std::vector<fs::path> includes = t.cuda_includes, libraries = t.cuda_libraries;
  if (includes.empty()) {
    includes = {root / "include", root / "include/cccl"};
    libraries = {root / "lib64", root / "lib"};
  }
  const auto has = [&](const char* name) {
    return [name](const fs::path& dir) { return fs::exists(dir / name); };
  };
  const auto runtime = std::find_if(libraries.begin(), libraries.end(), has("libcudart_static.a"));
  if (std::none_of(includes.begin(), includes.end(), has("cuda_runtime_api.h")) ||
      runtime == libraries.end()) {
    t.together_because = "cuda_runtime_api.h or libcudart_static.a is not where it is";
    return;
  }
  t.host_includes = std::move(includes);
  t.host_runtime = *runtime;
}

std::string version_of(const fs::path& program, const std::string& argument,
                       const std::regex& pattern) {
  if (program.empty()) return "";
  try {
    const Finished f = run({.argv = {program.string(), argument}, .folder = {}, .env = {}},
                           std::chrono::seconds(20));
    std::smatch m;
    if (f.ok() && std::regex_search(f.output, m, pattern)) return m[1];
    return f.ok() ? trim(split(f.output, '\n').front()) : "";
  } catch (const std::system_error&) {
    return "";
  }
}

std::string cutlass_version(const fs::path& root) {
  const fs::path header = root / "include/cutlass/version.h";
  if (!fs::exists(header)) return "";
  const std::string text = read_file(header);
  std::string out;
  for (const char* part : {"CUTLASS_MAJOR", "CUTLASS_MINOR", "CUTLASS_PATCH"}) {
    std::smatch m;
    if (!std::regex_search(text, m, std::regex(std::string("#define +") + part + " +([0-9]+)")))
      return "unknown";
    out += (out.empty() ? "" : ".") + m[1].str();
  }
  return out;
}

void find_cutlass(Toolchain& t, const std::vector<fs::path>& sites) {
  std::vector<fs::path> places;
  if (const std::string own = environment("TESSERA_CUTLASS_DIR"); !own.empty()) {
    places = {own, fs::path(own) / "source"};
  } else {
    for (const fs::path& site : sites) places.push_back(site / "cutlass_library/source");
  }
  for (const fs::path& place : places) {
    if (!fs::exists(place / "include/cutlass/version.h")) continue;
    t.cutlass = place;
    t.cutlass_version = cutlass_version(place);
    return;
  }
}

// include/ of the source tree or of the installed package: above the executable's folder, or
// $TESSERA_INCLUDE.
fs::path find_own_include() {
  if (const std::string own = environment("TESSERA_INCLUDE"); !own.empty()) return own;
  for (fs::path at = executable_folder(); at.has_relative_path(); at = at.parent_path()) {
    for (const fs::path& place : {at / "include", at / "share/tessera/include"}) {
      if (fs::exists(place / "tessera/kernel.h")) return place;
    }
  }
#ifdef TESSERA_SOURCE_INCLUDE
  if (fs::exists(fs::path(TESSERA_SOURCE_INCLUDE) / "tessera/kernel.h"))
    return TESSERA_SOURCE_INCLUDE;
#endif
  return {};
}

}  // namespace

Toolchain locate(const fs::path& python) {
  Toolchain t;
  const std::vector<fs::path> sites = python_packages(python);
  find_nvcc(t, sites);
  find_cutlass(t, sites);
  t.own_include = find_own_include();
  if (const std::string own = environment("TESSERA_CXX"); !own.empty()) {
    if (const auto found = find_program(own))
      t.cxx = *found;
    else if (is_program(own))
      t.cxx = own;
  } else {
    for (const char* name : {"g++", "c++", "clang++"}) {
      if (const auto found = find_program(name)) {
        t.cxx = *found;
        break;
      }
    }
  }
  t.nvcc_version = version_of(t.nvcc, "--version", std::regex("V([0-9.]+)"));
  t.cxx_version = version_of(t.cxx, "--version", std::regex("^([^\n]+)"));
  find_host_side(t);
  return t;
}

std::string Toolchain::fingerprint() const {
  return fmt::format(
      "nvcc {}; cutlass {}; {} on {}; headers {}", nvcc.empty() ? "none" : nvcc_version,
      cutlass.empty() ? "none" : cutlass_version, cxx.empty() ? "no C++ compiler" : cxx_version,
      cpu_model(), own_headers_hash(own_include).substr(0, 12));
}

Json Toolchain::to_json() const {
  return {{"nvcc", nvcc.string()},
          {"nvcc_version", nvcc_version},
          {"together_because", together_because},
          {"cxx", cxx.string()},
          {"cxx_version", cxx_version},
          {"cutlass", cutlass.string()},
          {"cutlass_version", cutlass_version},
          {"own_include", own_include.string()},
          {"fingerprint", fingerprint()}};
}

}  // namespace tessera::toolchain
