#include "toolchain/confined.h"

#include "base/files.h"

#include "sandbox/sandbox.h"

namespace tessera::toolchain {
namespace fs = std::filesystem;
namespace {

/// What these compilers read: their installations, and the headers and libraries that they are
/// given.
std::vector<std::string> folders_of(const Toolchain& tools) {
  std::vector<fs::path> all = {tools.cutlass, tools.own_include, tools.host_runtime};
  for (const auto& list : {tools.cuda_includes, tools.cuda_libraries, tools.host_includes})
    all.insert(all.end(), list.begin(), list.end());
  for (const fs::path& program : {tools.nvcc, tools.cxx}) {
    if (program.empty()) continue;
    // .../bin/nvcc, and the installation that a link stands for.
    std::error_code ec;
    all.push_back(program.parent_path().parent_path());
    const fs::path real = fs::canonical(program, ec);
    if (!ec) all.push_back(real.parent_path().parent_path());
  }
  std::vector<std::string> out;
  for (const fs::path& p : all) {
    if (p.is_absolute() && p.has_relative_path()) out.push_back(p.lexically_normal().string());
  }
  return out;
}

}  // namespace

Result<Outcome> run_compiler(const Toolchain& tools, const Command& command,
                             std::chrono::milliseconds limit, const std::atomic<bool>* cancel) {
  return run_confined(tools, command, limit, cancel, {});
}

Result<Outcome> run_confined(const Toolchain& tools, const Command& command,
                             std::chrono::milliseconds limit, const std::atomic<bool>* cancel,
                             const Permissions& may) {
  if (!tools.confined) return Outcome{.done = run(command, limit, cancel), .forbidden = ""};
  const TemporaryFolder reports("tessera-report");
  sandbox::Policy policy = sandbox::usual();
  const std::vector<std::string> read = folders_of(tools);
  policy.readable.insert(policy.readable.end(), read.begin(), read.end());
  policy.readable.insert(policy.readable.end(), may.readable.begin(), may.readable.end());
  if (may.gpu) sandbox::add_gpu(policy);
  if (may.local_sockets) TESSERA_CHECK(sandbox::allow_local_sockets(policy));
  policy.writable = {fs::absolute(command.folder).lexically_normal().string()};
  policy.report = (reports.path() / "report.json").string();
  TESSERA_TRY(confined, sandbox::confine(command, policy));
  Outcome out{.done = run(confined, limit, cancel), .forbidden = ""};
  if (const auto report = sandbox::read_report(policy.report))
    out.forbidden = sandbox::told(*report);
  return out;
}

}  // namespace tessera::toolchain
