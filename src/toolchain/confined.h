// Compilers, and what they made, run where they can read their own folders alone.
#pragma once

#include <chrono>
#include <filesystem>

#include "base/process.h"
#include "toolchain/toolchain.h"

namespace tessera::toolchain {

/// A command that ran to its end, confined or not.
struct Outcome {
  Finished done;
  std::string forbidden;  // what it tried that the sandbox does not allow; "" for nothing
};

/// What a program may beyond what compilers may.
struct Permissions {
  bool gpu = false;
  /// Its processes talk to each other over sockets of this machine. Only a sandbox with a network
  /// of its own can allow that.
  bool local_sockets = false;
  std::vector<std::string> readable;  // files and folders, absolute
};

/// Runs `command` in its folder, which alone it may write where the tools are confined. Error
/// TS0717: nothing here confines it. Throws std::system_error when it does not start.
Result<Outcome> run_compiler(const Toolchain& tools, const Command& command,
                             std::chrono::milliseconds limit, const std::atomic<bool>* cancel);

/// The same for a program that needs more. Error TS0717 also where no sandbox of this machine has a
/// network of its own and the program asks for local sockets.
Result<Outcome> run_confined(const Toolchain& tools, const Command& command,
                             std::chrono::milliseconds limit, const std::atomic<bool>* cancel,
                             const Permissions& may);

}  // namespace tessera::toolchain
