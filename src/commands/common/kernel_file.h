// What commands on kernel files share: FILE.py[:KERNEL] with constants, to a kernel of the core.
#pragma once

#include "commands/commands.h"

#include "core/kernel.h"

namespace tessera::commands {

/// The file, its constants, then `more`.
std::vector<Parameter> kernel_parameters(std::vector<Parameter> more = {});

/// The kernel that the arguments name: a file of the language elaborated, or the core's own text
/// parsed. TS0036 for a file that cannot be read, TS0037 for one in which no kernel or several
/// could be meant, TS0038 for a constant that is no NAME=VALUE; else the errors of the language and
/// the core.
Result<core::Kernel> load_kernel(const Json& arguments);

/// `NAME=VALUE` texts, of the parameter of that name. TS0038.
Result<std::map<std::string, std::string>> assignments(const Json& arguments,
                                                       std::string_view parameter);

}  // namespace tessera::commands
