#include "toolchain/sanitize.h"

#include <fmt/ranges.h>
#include <regex>
#include <system_error>

#include "base/files.h"
#include "base/process.h"
#include "base/text.h"
#include "toolchain/confined.h"
#include "toolchain/flags.h"

namespace tessera::toolchain {
namespace {

constexpr std::string_view driver = R"(#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include "tessera/kernel.h"

static void* filled(size_t bytes, const std::vector<unsigned char>& element) {
  unsigned char* to = static_cast<unsigned char*>(malloc(bytes ? bytes : 1));
  for (size_t i = 0; i < bytes; ++i) to[i] = element[i % element.size()];
  return to;
}

int main() {
)";

constexpr std::string_view run_it = R"(
  tessera_launch launch = {tensors.data(), int32_t(tensors.size()), ints.data(), int32_t(ints.size())};
  const int64_t bytes = tessera_workspace_size(&launch);
  if (bytes < 0) return fprintf(stderr, "refused: %s\n", tessera_last_error()), 3;
  void* workspace = bytes ? aligned_alloc(256, (bytes + 255) / 256 * 256) : nullptr;
  if (tessera_run(&launch, workspace, nullptr) != 0)
    return fprintf(stderr, "refused: %s\n", tessera_last_error()), 3;
  return 0;
}
)";

std::string program(const std::vector<Storage>& tensors, const std::vector<int64_t>& ints) {
  std::string text(driver);
  text += "  std::vector<void*> tensors;\n";
  for (const Storage& t : tensors) {
    std::vector<int> bytes;
    for (const char c : t.element) bytes.push_back(static_cast<unsigned char>(c));
    text +=
        fmt::format("  tensors.push_back(filled({}, {{{}}}));\n", t.bytes, fmt::join(bytes, ","));
  }
  text += fmt::format("  std::vector<int64_t> ints = {{{}}};\n", fmt::join(ints, ","));
  return text + std::string(run_it);
}

std::vector<std::string> command(const Toolchain& tools, const Source& source,
                                 const std::string& file) {
  std::vector<std::string> argv = {tools.cxx.string(),
                                   "-std=c++17",
                                   "-O1",
                                   "-g",
                                   "-fopenmp",
                                   "-march=native",
                                   "-ffp-contract=off",
                                   "-fno-omit-frame-pointer",
                                   "-w",
                                   "-fsanitize=address,undefined",
                                   "-fno-sanitize-recover=undefined",
                                   "-I" + tools.own_include.string()};
  for (const std::string& f : source.flags) {
    if (f.starts_with("-D") || f.starts_with("-I")) argv.push_back(f);
  }
  argv.insert(argv.end(), {file, "driver.cpp", "-o", "program"});
  return argv;
}

/// The first place in the report that is of the source.
int line_of(const std::string& report, const std::string& file) {
  const std::regex place(file + ":([0-9]+)");
  std::smatch found;
  return std::regex_search(report, found, place) ? std::stoi(found[1]) : 0;
}

std::string finding_of(const std::string& report) {
  static const std::regex address("ERROR: AddressSanitizer: ([A-Za-z-]+)");
  static const std::regex access("(READ|WRITE) of size [0-9]+");
  static const std::regex undefined("runtime error: ([^\n]+)");
  std::smatch found, kind;
  if (std::regex_search(report, found, address)) {
    std::string out = found[1];
    if (std::regex_search(report, kind, access)) out += ": " + kind.str();
    return out;
  }
  return std::regex_search(report, found, undefined) ? found[1].str() : "";
}

Sanitized judged(const Finished& done, const std::string& file) {
  Sanitized out{.ran = true, .clean = done.ok(), .seconds = done.seconds};
  if (done.timed_out)
    return {.why = "under the sanitizers it took more than its time", .seconds = done.seconds};
  if (out.clean) return out;
  out.finding = finding_of(done.output);
  if (out.finding.empty()) {
    out.finding =
        done.signal != 0 ? fmt::format("signal {}", done.signal) : trim(done.output.substr(0, 300));
  }
  out.line = line_of(done.output, file);
  return out;
}

}  // namespace

Sanitized sanitize(const Toolchain& tools, const Source& source,
                   const std::vector<Storage>& tensors, const std::vector<int64_t>& ints,
                   std::chrono::seconds limit) {
  const TemporaryFolder folder("tessera-sanitize");
  const std::string file = "kernel_source.cpp";
  write_file_atomically(folder.path() / file, source.text);
  write_file_atomically(folder.path() / "driver.cpp", program(tensors, ints));
  try {
    const auto compiled = run_compiler(
        tools, {.argv = command(tools, source, file), .folder = folder.path()}, limit, nullptr);
    if (!compiled) return {.why = compiled.error().message};
    const Finished& built = compiled->done;
    if (!built.ok())
      return {.why = "it does not build with -fsanitize=address,undefined: " +
                     trim(built.output.substr(0, 300)),
              .seconds = built.seconds};
    auto ran = run_compiler(
        tools,
        {.argv = {"./program"},
         .folder = folder.path(),
         .env = {{"ASAN_OPTIONS", "detect_leaks=0"}, {"UBSAN_OPTIONS", "print_stacktrace=1"}}},
        limit, nullptr);
    if (!ran) return {.why = ran.error().message};
    ran->done.seconds += built.seconds;
    Sanitized out = judged(ran->done, file);
    out.forbidden = ran->forbidden;
    return out;
  } catch (const std::system_error& e) {
    return {.why = fmt::format("it did not start: {}", e.what())};
  }
}

}  // namespace tessera::toolchain
