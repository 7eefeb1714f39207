// `tessera doctor`: what is installed, what is missing, how to get it.
#include <filesystem>
#include <fmt/format.h>
#include <tuple>
#include <unistd.h>

#include "arch/arch.h"
#include "base/files.h"
#include "base/process.h"
#include "base/text.h"
#include "bridge/bridge.h"
#include "commands/commands.h"
#include "commands/common/machine_checks.h"
#include "registry/registry.h"

#include "sandbox/sandbox.h"
#include "smt/library.h"

namespace tessera::commands {
namespace {

namespace fs = std::filesystem;

constexpr const char* ask_python = R"(
import importlib.metadata, json, platform
out = {"python": platform.python_version()}
for name in ("numpy", "plotly", "triton"):
    try:
        out[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        pass
try:
    import torch
    out["torch"] = torch.__version__
    if torch.version.cuda:
        out["torch_cuda"] = torch.version.cuda
    if torch.cuda.is_available():
        out["gpu"] = torch.cuda.get_device_name(0)
        out["capability"] = list(torch.cuda.get_device_capability(0))
except Exception as e:
    out["torch_error"] = f"{type(e).__name__}: {e}"
print("\n" + json.dumps(out))
)";

Json packages_of(const fs::path& python) {
  if (python.empty()) return {{"error", "no interpreter found"}};
  try {
    const Finished done =
        tessera::run({.argv = {python.string(), "-c", ask_python}}, std::chrono::seconds(120));
    // Warnings of packages share the output; the answer is its last line.
    Json answer = try_parse_json(split(trim(done.output), '\n').back());
    if (done.ok() && answer.is_object()) return answer;
    return {{"error", done.timed_out
                          ? "no answer in 120 s"
                          : fmt::format("exit {}: {}", done.exit_code, trim(done.output))}};
  } catch (const std::system_error& e) {
    return {{"error", e.what()}};
  }
}

std::vector<std::string> gpus_by_driver() {
  const auto smi = find_program("nvidia-smi");
  if (!smi) return {};
  const Finished done =
      tessera::run({.argv = {smi->string(), "--query-gpu=name", "--format=csv,noheader"}},
                   std::chrono::seconds(30));
  std::vector<std::string> names;
  if (!done.ok()) return names;
  for (const std::string& line : split(done.output, '\n')) {
    if (!trim(line).empty()) names.push_back(trim(line));
  }
  return names;
}

/// The one that is used, and else why there is none.
std::pair<std::string, std::string> sandbox_of_machine() {
  std::string faults = sandbox::machine().fault;
  for (const sandbox::Mechanism& m : sandbox::machine().mechanisms) {
    std::string line = fmt::format("{}: {}", m.name, m.summary);
    if (!m.missing.empty()) line += "; not protected: " + join(m.missing, ", ");
    if (m.works) return {line, ""};
    faults += fmt::format("{}{}: {}", faults.empty() ? "" : "; ", m.name, m.fault);
  }
  return {"", faults};
}

// The nearest existing folder says whether the place can be made, and how much room there is.
PlaceFacts facts_of(std::string name, const fs::path& path) {
  PlaceFacts out{.name = std::move(name), .path = path};
  fs::path there = fs::absolute(path);
  while (!fs::exists(there) && there.has_relative_path()) there = there.parent_path();
  out.writable = ::access(there.c_str(), W_OK) == 0;
  std::error_code ec;
  const fs::space_info space = fs::space(there, ec);
  if (!ec) out.free_gib = static_cast<double>(space.available) / (1 << 30);
  return out;
}

std::string_view name_of(Check::State state) {
  switch (state) {
    case Check::State::ok:
      return "ok";
    case Check::State::missing:
      return "MISSING";
    case Check::State::optional:
      return "absent";
  }
  return "ok";
}

Result<Outcome> run(const Json&, Context& context) {
  if (context.progress)
    context.progress({{"stage", "doctor"}, {"message", "asking the compilers and Python"}});
  MachineFacts facts;
  facts.python = bridge::find_python();
  facts.tools = toolchain::locate(facts.python);
  facts.packages = packages_of(facts.python);
  facts.gpus = gpus_by_driver();
  TESSERA_TRY(host, arch::find("host"));
  facts.processor = arch::resources_of(*host);
  if (const auto& z3 = smt::library())
    facts.solver = fmt::format("{} ({})", z3->version, z3->file.string());
  else
    facts.solver_fault = z3.error().found;
  std::tie(facts.sandbox, facts.sandbox_fault) = sandbox_of_machine();
  facts.places = {facts_of("cache", cache_home()), facts_of("registry", registry::default_place())};
  Outcome out;
  out.data = {{"schema", "tessera.doctor/1"},
              {"ready", true},
              {"checks", Json::array()},
              {"toolchain", facts.tools.to_json()},
              {"fingerprint", facts.tools.fingerprint()},
              {"packages", facts.packages},
              {"sandbox", sandbox::to_json(sandbox::machine())}};
  std::string table =
      fmt::format("{:<18}{:<9}{}\n{}\n", "what", "state", "found", std::string(79, '-'));
  std::string advice;
  for (const Check& c : judge(facts)) {
    out.data["checks"].push_back({{"name", c.name},
                                  {"state", name_of(c.state)},
                                  {"found", c.found},
                                  {"needed_for", c.needed_for},
                                  {"how", c.how}});
    table += fmt::format("{:<18}{:<9}{}\n", c.name, name_of(c.state), c.found);
    if (!c.how.empty()) advice += fmt::format("{}, for {}:\n    {}\n", c.name, c.needed_for, c.how);
    if (c.state == Check::State::missing) out.exit = Exit::bad_input;
  }
  const bool ready = out.exit == Exit::ok;
  out.data["ready"] = ready;
  out.data["target"] = facts.gpus.empty() ? "host" : "cuda";
  out.text =
      table + (advice.empty() ? "" : "\n" + advice) +
      (ready ? fmt::format("\nready to optimize on {}\n", facts.gpus.empty() ? "host" : "the GPU")
             : "\nnot ready: get what is MISSING\n");
  return out;
}

}  // namespace

extern const Command doctor = {
    .name = "doctor",
    .doc = "what is installed, what is missing, how to get it",
    .details =
        "Exits with 3 when something that `tessera optimize` needs on this machine is missing.",
    .run = run,
    .schemas = {"tessera.doctor/1"},
};

}  // namespace tessera::commands
