// What `doctor` judges: facts about a machine in, checks with advice out. Pure, so that every
// machine can be tested.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "commands/commands.h"
#include "toolchain/toolchain.h"

namespace tessera::commands {

struct PlaceFacts {
  std::string name;  // "cache", "registry"
  std::filesystem::path path;
  bool writable = false;
  double free_gib = 0;
};

struct MachineFacts {
  toolchain::Toolchain tools;
  std::filesystem::path python;  // empty when there is none
  /// What the interpreter says:
  /// {"python","torch","torch_cuda","gpu","capability","plotly","numpy"}; a missing package is
  /// absent, "error" says why the interpreter told nothing.
  Json packages = Json::object();
  std::string processor;          // what kernels on host have
  std::vector<std::string> gpus;  // names by the driver
  std::string solver;             // version and file of Z3's library; empty when none can be used
  std::string solver_fault;       // then: why
  std::string sandbox;            // mechanism, with what it does not protect; empty when none works
  std::string sandbox_fault;      // then: why
  std::vector<PlaceFacts> places;
};

struct Check {
  std::string name;
  enum class State : uint8_t {
    ok,
    missing,
    optional
  } state = State::ok;  // optional: absent, but not needed here
  std::string found;
  std::string needed_for;
  std::string how;  // to get it, when it is not there
};

/// What the main job needs: a C++ compiler, Python with torch, writable places with space; and,
/// where there is a GPU, nvcc, CUTLASS and a torch that sees it.
std::vector<Check> judge(const MachineFacts& facts);

}  // namespace tessera::commands
