// A kernel file to a library, for the commands that need one.
#pragma once

#include "commands/commands.h"

namespace tessera::commands {

/// Those of a kernel file, --unproved, then `more`.
std::vector<Parameter> building_parameters(std::vector<Parameter> more = {});

/// Checks the kernel and builds it: tessera.built/1, exit code 0. A kernel that is refuted is not
/// built (exit code 1), nor one that is undecided without --unproved (exit code 2, TS0890): the
/// outcome then has no library, and says why. Errors: those of the file, of the lowering and of the
/// compiler.
Result<Outcome> built(const Json& arguments, Context& context);

}  // namespace tessera::commands
