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

/// Runs `command` in its folder, which alone it may write where the tools are confined. Error
/// TS0717: nothing here confines it. Throws std::system_error when it does not start.
Result<Outcome> run_compiler(const Toolchain& tools, const Command& command,
                             std::chrono::milliseconds limit, const std::atomic<bool>* cancel);

}  // namespace tessera::toolchain
