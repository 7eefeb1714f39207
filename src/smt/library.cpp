#include "smt/library.h"

#include <cstdlib>
#include <dlfcn.h>
#include <malloc.h>
#include <tuple>

#include "base/files.h"
#include "base/python_packages.h"
#include "base/text.h"

namespace tessera::smt {
namespace {

namespace fs = std::filesystem;

constexpr unsigned least_major = 4, least_minor = 12;

fs::path from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? fs::path{} : fs::path{value};
}

fs::path of_package(const fs::path& packages) {
  return packages / "z3" / "lib" / "libz3.so";
}

// The names of the functions that the library lacks.
std::vector<std::string> bind(void* handle, Functions& f) {
  std::vector<std::string> missing;
#define TESSERA_Z3(result, name, ...)                                               \
  f.name = reinterpret_cast<result (*)(__VA_ARGS__)>(::dlsym(handle, "Z3_" #name)); \
  if (f.name == nullptr) missing.emplace_back("Z3_" #name);
#include "smt/functions.inc"
#undef TESSERA_Z3
  return missing;
}

// A context takes some MiB and gives them back. Once the heap has been large, glibc returns them to
// the system each time and has them mapped anew: 8 ms a question instead of 0.6. The second line is
// what glibc would arrive at by itself without the first.
void keep_memory() {
#ifdef __GLIBC__
  ::mallopt(M_TOP_PAD, 64 << 20);
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);
#endif
}

Diagnostic wrong(const fs::path& file, std::string_view why) {
  return fail(wrong_solver, "{} is no Z3 that can be used", file.string())
      .expect("Z3 {}.{} or later", least_major, least_minor)
      .but_found("{}", why)
      .help("install z3-solver with pip, or set TESSERA_LIBZ3 to the libz3.so of another");
}

Result<Library> load_file(const fs::path& file) {
  // Never unloaded: the functions are used until the program ends.
  void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return error(wrong(file, ::dlerror()));
  Library out;
  out.file = file;
  if (const std::vector<std::string> missing = bind(handle, out.functions); !missing.empty())
    return error(wrong(file, "it lacks " + join(missing, ", ")));
  unsigned major = 0, minor = 0, build = 0, revision = 0;
  out.functions.get_version(&major, &minor, &build, &revision);
  out.version = fmt::format("{}.{}.{}", major, minor, build);
  if (std::tie(major, minor) < std::tie(least_major, least_minor))
    return error(wrong(file, "Z3 " + out.version));
  keep_memory();
  return out;
}

}  // namespace

Surroundings surroundings() {
  return {from_environment("TESSERA_LIBZ3"), python_packages(from_environment("TESSERA_PYTHON")),
          executable_folder()};
}

std::vector<fs::path> candidates(const Surroundings& from) {
  if (!from.library.empty()) return {from.library};
  std::vector<fs::path> out;
  for (const fs::path& packages : from.packages) out.push_back(of_package(packages));
  for (fs::path at = from.executable; at.has_relative_path(); at = at.parent_path()) {
    out.push_back(of_package(at));
    for (const fs::path& packages : packages_below(at / ".venv"))
      out.push_back(of_package(packages));
  }
  return out;
}

Result<Library> load(const std::vector<fs::path>& files) {
  for (const fs::path& file : files) {
    std::error_code ec;
    if (fs::exists(file, ec)) return load_file(file);
  }
  return error(fail(no_solver, "there is no Z3, which decides what index arithmetic alone does not")
                   .expect("libz3.so of the Python package z3-solver")
                   .but_found("{}", files.size() == 1
                                        ? files[0].string() + " does not exist"
                                        : fmt::format("none of {} places has it", files.size()))
                   .help("install z3-solver with pip beside tessera, or set TESSERA_LIBZ3 to a "
                         "libz3.so"));
}

const Result<Library>& library() {
  static const Result<Library> loaded = load(candidates(surroundings()));
  return loaded;
}

}  // namespace tessera::smt
