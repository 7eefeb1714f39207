#include "toolchain/compute_sanitizer.h"

#include <fmt/ranges.h>
#include <regex>
#include <system_error>

#include "base/files.h"
#include "base/process.h"
#include "base/text.h"
#include "toolchain/confined.h"
#include "toolchain/machine.h"

namespace tessera::toolchain {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view driver = R"(#include <cuda_runtime.h>
#include <dlfcn.h>
#include <cstdint>
#include <cstdio>
#include <vector>
#include "tessera/kernel.h"

static std::vector<void*> tensors;

static bool fails(cudaError_t e) {
  if (e != cudaSuccess) fprintf(stderr, "refused: %s\n", cudaGetErrorString(e));
  return e != cudaSuccess;
}

static bool filled(size_t bytes, const std::vector<unsigned char>& element) {
  std::vector<unsigned char> from(bytes);
  for (size_t i = 0; i < bytes; ++i) from[i] = element[i % element.size()];
  void* to = nullptr;
  if (fails(cudaMalloc(&to, bytes ? bytes : 1)) || fails(cudaMemcpy(to, from.data(), bytes, cudaMemcpyHostToDevice)))
    return false;
  printf("tensor %zu at %p\n", tensors.size(), to);
  tensors.push_back(to);
  return true;
}

int main(int, char** words) {
  void* library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
  if (!library) return fprintf(stderr, "refused: %s\n", dlerror()), 3;
  const auto run = (decltype(&tessera_run))dlsym(library, "tessera_run");
  const auto size = (decltype(&tessera_workspace_size))dlsym(library, "tessera_workspace_size");
  const auto said = (decltype(&tessera_last_error))dlsym(library, "tessera_last_error");
  if (!run || !size || !said) return fprintf(stderr, "refused: not a kernel's library\n"), 3;
)";

constexpr std::string_view run_it = R"(
  tessera_launch launch = {tensors.data(), int32_t(tensors.size()), ints.data(), int32_t(ints.size())};
  const int64_t bytes = size(&launch);
  if (bytes < 0) return fprintf(stderr, "refused: %s\n", said()), 3;
  void* workspace = nullptr;
  if (bytes && fails(cudaMalloc(&workspace, bytes))) return 3;
  fflush(stdout);
  if (run(&launch, workspace, nullptr) != 0) return fprintf(stderr, "refused: %s\n", said()), 3;
  return fails(cudaDeviceSynchronize()) ? 3 : 0;
}
)";

std::string program(const std::vector<Storage>& tensors, const std::vector<int64_t>& ints) {
  std::string text(driver);
  for (const Storage& t : tensors) {
    std::vector<int> bytes;
    for (const char c : t.element) bytes.push_back(static_cast<unsigned char>(c));
    text += fmt::format("  if (!filled({}, {{{}}})) return 3;\n", t.bytes, fmt::join(bytes, ","));
  }
  text += fmt::format("  std::vector<int64_t> ints = {{{}}};\n", fmt::join(ints, ","));
  return text + std::string(run_it);
}

// nvcc knows where the runtime lies; it passes the text on to the C++ compiler.
std::vector<std::string> command(const Toolchain& tools) {
  std::vector<std::string> argv = {tools.nvcc.string(), "-std=c++17", "-O1"};
  if (!tools.cxx.empty()) argv.insert(argv.end(), {"-ccbin", tools.cxx.string()});
  argv.push_back("-I" + tools.own_include.string());
  for (const fs::path& dir : tools.cuda_includes) argv.push_back("-I" + dir.string());
  for (const fs::path& dir : tools.cuda_libraries) argv.push_back("-L" + dir.string());
  argv.insert(argv.end(), {"driver.cpp", "-cudart", "static", "-ldl", "-o", "program"});
  return argv;
}

constexpr int found_one = 86;  // no exit code of the program

std::vector<std::string> under(const fs::path& sanitizer, const char* tool,
                               const fs::path& library) {
  // Padding, so that what lies behind one tensor is not the next one.
  return {sanitizer.string(),
          "--tool",
          tool,
          "--padding",
          "4096",
          "--print-limit",
          "1",
          "--report-api-errors",
          "no",
          "--error-exitcode",
          std::to_string(found_one),
          "./program",
          library.string()};
}

/// "tensor 2" by the address that its allocation begins at.
std::string tensor_at(const std::string& output, const std::string& address) {
  std::smatch m;
  const std::regex place("tensor ([0-9]+) at " + address + "\\b");
  return std::regex_search(output, m, place) ? "tensor " + m[1].str() : "an allocation of its own";
}

std::string beside(const std::string& output) {
  static const std::regex near(
      "and is ([0-9,]+) bytes (after|before|inside) the nearest allocation at (0x[0-9a-f]+)");
  std::smatch m;
  if (!std::regex_search(output, m, near)) return "";
  return fmt::format(", {} bytes {} {}", m[1].str(), m[2].str(), tensor_at(output, m[3].str()));
}

Permissions permissions(const fs::path& sanitizer, const fs::path& library) {
  Permissions out{.gpu = true, .local_sockets = true, .readable = {}};
  std::error_code ignored;
  out.readable.push_back(library.parent_path().string());
  out.readable.push_back(fs::canonical(sanitizer, ignored).parent_path().string());
  return out;
}

}  // namespace

std::optional<GpuFinding> finding_in(const std::string& output) {
  // The tools say "Invalid ...", "Barrier error detected. ...", "Error: Race reported between ...".
  static const std::regex first(
      "========= (?:Error: )?((?:Invalid|Misaligned|Barrier|Race|Divergent|Missing)[^\n]*)");
  static const std::regex place(" in ([^\\s:]+):([0-9]+)");
  std::smatch m;
  if (!std::regex_search(output, m, first)) return std::nullopt;
  GpuFinding out{.text = trim(m[1].str()), .file = "", .line = 0};
  const std::string report = output.substr(static_cast<std::size_t>(m.position()));
  if (std::regex_search(report, m, place)) {
    out.file = m[1];
    out.line = std::stoi(m[2]);
  }
  out.text += beside(output);
  return out;
}

Sanitized compute_sanitize(const Toolchain& tools, const fs::path& library,
                           const std::vector<Storage>& tensors, const std::vector<int64_t>& ints,
                           std::chrono::seconds limit) {
  const auto sanitizer = beside_nvcc(tools, "compute-sanitizer");
  if (!sanitizer) return {.why = "there is no compute-sanitizer beside nvcc, and none on PATH"};
  const TemporaryFolder folder("tessera-sanitize");
  write_file_atomically(folder.path() / "driver.cpp", program(tensors, ints));
  Sanitized out{.ran = true, .clean = true};
  try {
    const auto built =
        run_compiler(tools, {.argv = command(tools), .folder = folder.path()}, limit, nullptr);
    if (!built) return {.why = built.error().message};
    if (!built->done.ok())
      return {.why = "its program does not build: " + trim(built->done.output.substr(0, 300))};
    out.seconds = built->done.seconds;
    for (const char* tool : {"memcheck", "synccheck", "racecheck"}) {
      const auto ran =
          run_confined(tools, {.argv = under(*sanitizer, tool, library), .folder = folder.path()},
                       limit, nullptr, permissions(*sanitizer, library));
      if (!ran) return {.why = ran.error().message};
      out.seconds += ran->done.seconds;
      out.forbidden = ran->forbidden;
      if (!out.forbidden.empty()) return out;
      if (ran->done.timed_out)
        return {.why = fmt::format("{} took more than {} s", tool, limit.count()),
                .seconds = out.seconds};
      if (ran->done.ok()) continue;
      const auto finding = finding_in(ran->done.output);
      if (!finding)
        return {.why = fmt::format("{}: {}", tool, trim(ran->done.output).substr(0, 300)),
                .seconds = out.seconds};
      out.clean = false;
      out.finding = fmt::format("{}: {}", tool, finding->text);
      out.file = finding->file;
      out.line = finding->line;
      return out;
    }
    return out;
  } catch (const std::system_error& e) {
    return {.why = fmt::format("it did not start: {}", e.what())};
  }
}

}  // namespace tessera::toolchain
