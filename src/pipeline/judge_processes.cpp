#include "pipeline/judge_processes.h"

#include "toolchain/ready.h"

#include "sandbox/sandbox.h"

namespace tessera::pipeline {
namespace fs = std::filesystem;

double seconds_of_machine() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Result<std::unique_ptr<Occupant>> Occupant::start(const std::string& module, const Room& room) {
  std::unique_ptr<Occupant> out(new Occupant);
  fs::create_directories(out->own());
  const fs::path python = bridge::find_python();
  bridge::Wrap wrap;
  if (room.confined) {
    wrap = [&](const Command& command) -> Result<Command> {
      sandbox::Policy policy = sandbox::usual();
      for (const std::string& f : sandbox::folders_of_python(python)) policy.readable.push_back(f);
      if (const fs::path package = bridge::python_path(); !package.empty())
        policy.readable.push_back(fs::absolute(package).lexically_normal().string());
      policy.readable.insert(policy.readable.end(), room.readable.begin(), room.readable.end());
      if (room.gpu) sandbox::add_gpu(policy);
      policy.writable = {out->own().string()};
      policy.report = (out->folder_.path() / "report.json").string();
      // Inputs and results of a module may be large, and are files for a moment.
      policy.file_bytes *= 8;
      policy.folder_bytes *= 8;
      Command inside = command;
      inside.folder = out->own();
      return sandbox::confine(inside, policy);
    };
  }
  const fs::path logs = cache_home() / "logs";
  TESSERA_CHECK(toolchain::ready_cache(logs));
  TESSERA_TRY(peer, bridge::spawn(python, module, logs / room.log, wrap));
  out->peer_ = std::move(peer);
  return out;
}

std::string Occupant::forbidden(double begin) const {
  const auto report = sandbox::read_report(folder_.path() / "report.json");
  return report ? sandbox::told(*report, begin) : "";
}

}  // namespace tessera::pipeline
