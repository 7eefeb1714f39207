// Runs a program and keeps what it prints.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tessera::realize::testing {

/// The exit status of nvcc or of a program, and what it printed.
std::pair<int, std::string> run_logged(const std::vector<std::string>& argv,
                                       const std::filesystem::path& folder);

}  // namespace tessera::realize::testing
