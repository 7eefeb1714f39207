#include "sandbox/sandbox.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <unistd.h>

#include "base/files.h"
#include "base/processors.h"
#include "base/text.h"

namespace tessera::sandbox {
namespace fs = std::filesystem;
namespace {

constexpr int64_t gib = int64_t{1} << 30;

Machine ask() {
  const fs::path program = launcher();
  if (program.empty()) return {.fault = "the program tessera-sandbox is not installed"};
  Machine out;
  try {
    const Finished done = run({.argv = {program.string(), "--ask"}}, std::chrono::seconds(30));
    const Json said = try_parse_json(done.output);
    if (!done.ok() || !said.is_object()) return {.fault = "it does not answer: " + done.output};
    for (const Json& m : said.at("mechanisms")) {
      out.mechanisms.push_back({.name = m.at("name"),
                                .summary = m.at("summary"),
                                .works = m.at("works"),
                                .fault = m.at("fault"),
                                .missing = m.at("missing")});
    }
  } catch (const std::system_error& e) {
    return {.fault = e.what()};
  }
  return out;
}

void add_existing(std::vector<std::string>& to, const fs::path& path) {
  std::error_code ignored;
  if (fs::exists(path, ignored)) to.push_back(path.lexically_normal().string());
}

/// All of the machine's memory but an eighth.
int64_t most_memory() {
  const int64_t all = int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  return all - all / 8;
}

std::string words_of(const Attempt& a) {
  if (a.what == "read" || a.what == "write") return fmt::format("to {} {}", a.what, a.detail);
  if (a.what == "network") return fmt::format("to use the network ({})", a.detail);
  if (a.what == "other process") return fmt::format("to get at another process ({})", a.detail);
  if (a.what == "signal") return fmt::format("to end other processes ({})", a.detail);
  return fmt::format("to gain rights ({})", a.detail);
}

Diagnostic none() {
  std::string found = machine().fault;
  for (const Mechanism& m : machine().mechanisms)
    found += fmt::format("{}{}: {}", found.empty() ? "" : "; ", m.name, m.fault);
  return fail(no_sandbox, "code that was given is not run: nothing here confines it")
      .expect("namespaces or Landlock")
      .but_found("{}", found)
      .help("`tessera doctor` says what is missing")
      .help("--unsandboxed runs it with all that you may do yourself");
}

constexpr const char* driver_daemon = "/run/nvidia-persistenced";

}  // namespace

fs::path launcher() {
  if (const char* own = std::getenv("TESSERA_SANDBOX_LAUNCHER"); own != nullptr && *own != 0)
    return own;
  for (fs::path at = executable_folder(); at.has_relative_path(); at = at.parent_path()) {
    for (const char* name : {"tessera-sandbox", "bin/tessera-sandbox"})
      if (::access((at / name).c_str(), X_OK) == 0 && fs::is_regular_file(at / name))
        return at / name;
  }
  return {};
}

const Machine& machine() {
  static const Machine found = ask();
  return found;
}

Json to_json(const Machine& m) {
  Json rows = Json::array();
  for (const Mechanism& one : m.mechanisms)
    rows.push_back({{"name", one.name},
                    {"summary", one.summary},
                    {"works", one.works},
                    {"fault", one.fault},
                    {"missing", one.missing}});
  return {{"fault", m.fault}, {"mechanisms", std::move(rows)}};
}

const Mechanism* strongest() {
  for (const Mechanism& m : machine().mechanisms)
    if (m.works) return &m;
  return nullptr;
}

std::vector<std::string> system_folders() {
  std::vector<std::string> out;
  for (const char* p : {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt",
                        "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
                        "/etc/alternatives", "/etc/localtime", "/sys/devices/system"})
    add_existing(out, p);
  return out;
}

std::vector<std::string> folders_of_python(const fs::path& python) {
  std::vector<std::string> out;
  if (python.empty()) return out;
  // .../bin/python: a virtual environment names the installation that it is of by its links.
  const fs::path own = fs::absolute(python).lexically_normal().parent_path().parent_path();
  std::error_code ec;
  const fs::path real = fs::canonical(python, ec).parent_path().parent_path();
  for (const fs::path& p : {own, ec ? fs::path{} : real}) {
    if (p.has_relative_path() && p != "/usr") add_existing(out, p);
  }
  return out;
}

void add_gpu(Policy& policy) {
  std::error_code ignored;
  for (const auto& e : fs::directory_iterator("/dev", ignored)) {
    if (e.path().filename().string().starts_with("nvidia"))
      policy.devices.push_back(e.path().string());
  }
  if (policy.devices.empty()) return;
  for (const char* p : {"/sys/bus/pci", "/sys/class", "/sys/devices", "/sys/module/nvidia",
                        driver_daemon, "/etc/nvidia"})
    add_existing(policy.readable, p);
}

Status allow_local_sockets(Policy& policy) {
  policy.local_sockets = policy.mechanism == "namespaces";
  // Its sockets are files: a network of one's own does not hide them.
  std::erase(policy.readable, driver_daemon);
  if (policy.local_sockets) return {};
  return error(fail(no_sandbox,
                    "a program that needs local sockets is not run: its sandbox has no network "
                    "of its own")
                   .expect("the mechanism namespaces")
                   .but_found("{}", policy.mechanism)
                   .help("`tessera doctor` says what is missing"));
}

Policy usual() {
  Policy p{.readable = system_folders()};
  if (const Mechanism* m = strongest()) p.mechanism = m->name;
  p.memory_bytes = most_memory();
  p.processes = 1024 + 32 * int64_t{processors()};
  p.file_bytes = 4 * gib;
  p.folder_bytes = 8 * gib;
  return p;
}

Status ready() {
  if (strongest() != nullptr) return {};
  return error(none());
}

Result<Command> confine(const Command& command, const Policy& policy) {
  if (policy.mechanism.empty()) return error(none());
  Command out = command;
  out.argv.insert(out.argv.begin(), {launcher().string(), to_json(policy).dump(), "--"});
  return out;
}

std::optional<Report> read_report(const fs::path& file) {
  try {
    return report_from_json(parse_json(read_file(file)));
  } catch (const std::exception&) {  // it is not there, or not whole
    return std::nullopt;
  }
}

std::string told(const Report& report, double since) {
  std::vector<std::string> parts;
  for (const Attempt& a : report.attempts)
    if (a.at >= since) parts.push_back(words_of(a));
  std::string text = parts.empty() ? "" : "it tried " + join(parts, ", ");
  if (report.limit.empty()) return text;
  return fmt::format("{}{}it was ended at its limit of {}", text, text.empty() ? "" : "; ",
                     report.limit);
}

}  // namespace tessera::sandbox
