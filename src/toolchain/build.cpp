#include <algorithm>
#include <atomic>
#include <system_error>
#include <unistd.h>

#include "base/files.h"
#include "base/process.h"
#include "base/text.h"
#include "toolchain/confined.h"
#include "toolchain/flags.h"
#include "toolchain/ptxas.h"
#include "toolchain/ready.h"
#include "toolchain/toolchain.h"

namespace tessera::toolchain {
namespace fs = std::filesystem;
namespace {

inline constexpr Code no_cutlass{"TS0302", "build.no_cutlass"};
inline constexpr Code compile_failed{"TS0303", "build.compile_failed"};
inline constexpr Code compile_timed_out{"TS0304", "build.timed_out"};
inline constexpr Code compiler_did_not_start{"TS0306", "build.compiler_did_not_start"};
inline constexpr Code cancelled{"TS0307", "build.cancelled"};
inline constexpr Code forbidden{"TS0327", "build.forbidden"};

/// Compilers run beside what takes times and what feeds it, and use every core that is left.
constexpr int gives_way = 10;

fs::path folder_of(const fs::path& cache, const std::string& hash) {
  return cache / hash.substr(0, 2) / hash;
}

// The first lines that name an error, then the end of the log: what a person looks for.
std::vector<std::string> telling_lines(const std::string& log, std::size_t most) {
  std::vector<std::string> out;
  const std::vector<std::string> lines = split(log, '\n');
  for (const std::string& l : lines) {
    if (out.size() < most &&
        (l.find("error") != std::string::npos || l.find("fatal") != std::string::npos)) {
      out.push_back(trim(l).substr(0, 400));
    }
  }
  for (std::size_t i = lines.size() > 4 ? lines.size() - 4 : 0; i < lines.size() && out.empty();
       ++i) {
    if (!trim(lines[i]).empty()) out.push_back(trim(lines[i]).substr(0, 400));
  }
  return out;
}

Diagnostic failure(const Source& source, const fs::path& log, const std::string& text,
                   bool remembered) {
  Diagnostic d = fail(compile_failed, "`{}` does not compile{}", source.name,
                      remembered ? " (remembered)" : "")
                     .with("log", log.string());
  d.notes = telling_lines(text, 3);
  d.helps.push_back(
      fmt::format("the whole log and the source are in {}", log.parent_path().string()));
  return d;
}

// What is stored under this hash: a library, a remembered failure, or nothing.
std::optional<Result<Built>> stored(const Source& source, const fs::path& folder,
                                    const std::string& hash) {
  std::error_code ignored;
  if (!fs::exists(folder / "meta.json", ignored)) return std::nullopt;
  Json meta;
  try {
    meta = parse_json(read_file(folder / "meta.json"));
  } catch (const std::exception&) {
    return std::nullopt;  // damaged: built again and replaced
  }
  if (!meta.value("ok", false)) {
    const std::string log = fs::exists(folder / "log.txt") ? read_file(folder / "log.txt") : "";
    return error(failure(source, folder / "log.txt", log, true));
  }
  const fs::path library = folder / "kernel.so";
  if (!fs::exists(library, ignored) ||
      fs::file_size(library, ignored) != meta.value("bytes", std::uintmax_t{0})) {
    return std::nullopt;
  }
  fs::last_write_time(folder / "meta.json", fs::file_time_type::clock::now(),
                      ignored);  // "used": prune keeps it
  return Built{.library = library,
               .hash = hash,
               .cached = true,
               .seconds = meta.value("seconds", 0.0),
               .resources = meta.value("resources", Json::object())};
}

Status check_tools(const Toolchain& tools, const Source& source) {
  TESSERA_CHECK(ready_compilers(tools, source.language));
  if (source.cutlass && tools.cutlass.empty()) {
    return error(fail(no_cutlass, "`{}` needs the CUTLASS headers and there are none", source.name)
                     .help("`pip install nvidia-cutlass==4.2.0.0`, or set TESSERA_CUTLASS_DIR to a "
                           "CUTLASS tree"));
  }
  return {};
}

// Puts the finished folder in its place with one rename. Another builder may have been first: its
// result is as good.
void publish(const fs::path& aside, const fs::path& folder) {
  fs::create_directories(folder.parent_path());
  std::error_code code;
  fs::rename(aside, folder, code);
  if (!code) return;
  if (fs::exists(folder / "meta.json")) {
    // Either the other builder's fresh entry, or a damaged one. Moving it away first keeps readers
    // from a half state.
    const fs::path old = fs::path(aside.string() + ".old");
    fs::rename(folder, old, code);
    fs::rename(aside, folder, code);
    std::error_code ignored;
    fs::remove_all(old, ignored);
    if (!code || fs::exists(folder / "meta.json")) return;
  }
  throw fs::filesystem_error("cannot publish", folder, code);
}

struct Aside {
  fs::path path;
  explicit Aside(const fs::path& cache, const std::string& hash) {
    static std::atomic<unsigned> counter{0};
    path = cache / "building" / fmt::format("{}.{}.{}", hash, ::getpid(), counter++);
    fs::create_directories(path);
  }
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;
  ~Aside() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

/// One command after the other until one fails, all within `limit`: the last one's outcome, with
/// what all have printed and the seconds of all.
Result<Outcome> run_all(const Toolchain& tools,
                        const std::vector<std::vector<std::string>>& commands,
                        const fs::path& folder, std::chrono::seconds limit,
                        const std::atomic<bool>* cancel) {
  using std::chrono::milliseconds;
  Outcome all;
  for (const std::vector<std::string>& argv : commands) {
    const auto left =
        milliseconds(limit) - milliseconds(static_cast<int64_t>(all.done.seconds * 1e3));
    // Compilers write their temporaries beside the build: they vanish with it when it is killed.
    TESSERA_TRY(one, run_compiler(tools,
                                  {.argv = argv,
                                   .folder = folder,
                                   .env = {{"TMPDIR", folder.string()}},
                                   .niceness = gives_way},
                                  std::max(left, milliseconds(0)), cancel));
    one.done.output.insert(0, all.done.output);
    one.done.seconds += all.done.seconds;
    all = std::move(one);
    if (!all.done.ok() || !all.forbidden.empty()) break;
  }
  return all;
}

/// {"verdict", ..., "seconds"}; null where nothing is to be proved.
Result<Json> proof_of(const Source& source) {
  if (!source.prove) return Json();
  const auto begin = std::chrono::steady_clock::now();
  TESSERA_TRY(proof, source.prove());
  proof["seconds"] =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return proof;
}

/// Whether what the compilers said is of the source: else nothing is remembered of it.
Status ended_by_itself(const Finished& done, const Source& source, const fs::path& cache,
                       std::chrono::seconds limit) {
  if (done.cancelled) return error(fail(cancelled, "building `{}` was cancelled", source.name));
  if (done.timed_out) {
    return error(
        fail(compile_timed_out, "compiling `{}` took more than {} s", source.name, limit.count()));
  }
  if (done.output.find("No space left on device") != std::string::npos) {
    return error(cache_not_writable(cache, "no space left on device"));
  }
  // A signal (out of memory, an interrupt) says nothing about the source: not remembered.
  if (done.signal != 0) {
    return error(fail(compile_failed, "the compiler of `{}` was ended by signal {}", source.name,
                      done.signal)
                     .help("build fewer at once, or free memory"));
  }
  return {};
}

Diagnostic not_allowed(const Source& source, const Outcome& all) {
  Diagnostic d =
      fail(forbidden, "the compiler of `{}` was told to do what is not allowed", source.name)
          .help("a source reads its own text and the headers of the compilers alone");
  d.notes = telling_lines(all.done.output, 2);
  d.notes.insert(d.notes.begin(), all.forbidden);
  return d;
}

Result<Built> compile(const Toolchain& tools, const Source& source, const fs::path& cache,
                      const std::string& hash, std::chrono::seconds limit,
                      const std::atomic<bool>* cancel) {
  const Aside aside(cache, hash);
  const fs::path input =
      aside.path / (source.language == Language::cuda ? "source.cu" : "source.cpp");
  const fs::path output = aside.path / "kernel.so";
  write_file_atomically(input, source.text);
  TESSERA_TRY(proof, proof_of(source));
  Finished done;
  try {
    TESSERA_TRY(all, run_all(tools, compile_commands(tools, source, input, output), aside.path,
                             limit, cancel));
    if (!all.forbidden.empty()) return error(not_allowed(source, all));
    done = std::move(all.done);
  } catch (const std::system_error& e) {
    return error(fail(compiler_did_not_start, "the compiler did not start: {}", e.what())
                     .help("`tessera doctor` says what is installed"));
  }
  TESSERA_CHECK(ended_by_itself(done, source, cache, limit));
  const bool ok = done.ok() && fs::is_regular_file(fs::symlink_status(output));
  Json resources = source.language == Language::cuda ? parse_ptxas(done.output) : Json::object();
  if (!proof.is_null()) {
    done.seconds += proof.at("seconds").get<double>();
    resources["proof"] = proof;
  }
  Json meta = {{"schema", "tessera.build/1"},
               {"ok", ok},
               {"name", source.name},
               {"arch", source.arch},
               {"seconds", done.seconds},
               {"bytes", ok ? fs::file_size(output) : 0},
               {"resources", std::move(resources)},
               {"toolchain", tools.fingerprint()}};
  write_file_atomically(aside.path / "log.txt", done.output);
  write_file_atomically(aside.path / "meta.json", meta.dump(1));
  for (const auto& entry : fs::directory_iterator(aside.path)) {
    const std::string name = entry.path().filename();
    if (name != "kernel.so" && name != "log.txt" && name != "meta.json" &&
        name != input.filename()) {
      fs::remove_all(entry.path());
    }
  }
  const fs::path folder = folder_of(cache, hash);
  publish(aside.path, folder);
  if (!ok) return error(failure(source, folder / "log.txt", done.output, false));
  return Built{.library = folder / "kernel.so",
               .hash = hash,
               .cached = false,
               .seconds = done.seconds,
               .resources = meta.at("resources")};
}

}  // namespace

std::optional<Built> find_built(const Toolchain& tools, const Source& source,
                                const fs::path& cache) {
  const std::string hash = cache_key(tools, source);
  auto found = stored(source, folder_of(cache, hash), hash);
  if (!found || !*found) return std::nullopt;
  return **found;
}

Result<Built> build(const Toolchain& tools, const Source& source, const fs::path& cache,
                    std::chrono::seconds limit, const std::atomic<bool>* cancel) {
  const std::string hash = cache_key(tools, source);
  try {
    if (auto found = stored(source, folder_of(cache, hash), hash)) return *found;
    TESSERA_CHECK(check_tools(tools, source));
    return compile(tools, source, cache, hash, limit, cancel);
  } catch (const fs::filesystem_error& e) {
    return error(cache_not_writable(cache, e.what()));
  }
}

}  // namespace tessera::toolchain
