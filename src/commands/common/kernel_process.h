// Kernel files run on the GPU by a Python process of ours.
#pragma once

#include "commands/commands.h"

namespace tessera::commands {

/// --size and --seed, behind those of a build.
std::vector<Parameter> running_parameters();

/// Builds the kernel, then asks `python -m tessera.kernel_process` for `method` with
/// {"report": tessera.built/1, "sizes": {name: integer}, "seed"}. Its reply is {"data", "text",
/// "right"}: exit code 1 where that is false. TS0039 for a size that is no number, and what the
/// build and the process say.
Result<Outcome> on_the_gpu(const std::string& method, const Json& arguments, Context& context);

}  // namespace tessera::commands
