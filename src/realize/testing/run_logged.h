// Runs a program and keeps what it prints.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace tessera::realize::testing {

/// The exit status of nvcc or of a program, and what it printed.
inline std::pair<int, std::string> run_logged(const std::vector<std::string>& argv,
                                              const std::filesystem::path& folder) {
  std::string command;
  for (const std::string& a : argv) command += "'" + a + "' ";
  const int status = std::system((command + " > " + (folder / "log").string() + " 2>&1").c_str());
  std::ifstream log(folder / "log");
  return {status, std::string((std::istreambuf_iterator<char>(log)), {})};
}

}  // namespace tessera::realize::testing
