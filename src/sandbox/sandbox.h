// Confines commands: what agents write is compiled and run by this alone (docs/sandbox.md).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/process.h"
#include "diag/result.h"

#include "sandbox/policy.h"

namespace tessera::sandbox {

inline constexpr Code no_sandbox{"TS0717", "sandbox.none"};

/// One mechanism on this machine, as the launcher tried it.
struct Mechanism {
  std::string name;
  std::string summary;
  bool works = false;
  std::string fault;                 // why it does not work
  std::vector<std::string> missing;  // protections that it does not give
};

/// All mechanisms, the strongest first; asked once a process. `fault` where there is no launcher.
struct Machine {
  std::vector<Mechanism> mechanisms;
  std::string fault;
};
const Machine& machine();
/// {"fault", "mechanisms": [{"name", "summary", "works", "fault", "missing"}]}
Json to_json(const Machine& m);
/// The strongest that works here; null where none does.
const Mechanism* strongest();

/// $TESSERA_SANDBOX_LAUNCHER, else beside the program or in a `bin` folder above it; empty where
/// there is none.
std::filesystem::path launcher();

/// What every program needs to be loaded, and the compilers' own folders.
std::vector<std::string> system_folders();
/// The folders of an interpreter: its environment, and the installation behind it.
std::vector<std::string> folders_of_python(const std::filesystem::path& python);
/// The driver's devices and the folders that it reads; none where there is no NVIDIA GPU.
void add_gpu(Policy& policy);
/// Lets the program's processes connect to each other's local sockets. Error TS0717 where the
/// policy's mechanism leaves the machine's own sockets in reach.
Status allow_local_sockets(Policy& policy);
/// A policy without folders: the strongest mechanism, and limits that suit one kernel.
Policy usual();

/// Error TS0717 where nothing on this machine confines a program.
Status ready();

/// The command, confined. Error TS0717: nothing on this machine confines it.
Result<Command> confine(const Command& command, const Policy& policy);

/// What the launcher wrote; empty where it wrote nothing (it did not come so far).
std::optional<Report> read_report(const std::filesystem::path& file);
/// "it tried to read /home/u/.ssh/id_rsa, to open a connection (socket)"; "" where nothing was
/// tried and no limit was met. Attempts before `since` (CLOCK_MONOTONIC) are left out.
std::string told(const Report& report, double since = 0);

}  // namespace tessera::sandbox
