// Compiles a generated source with nvcc for its architecture, device code only (half of the time of
// a library).
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

#include "toolchain/toolchain.h"

namespace tessera::realize::testing {

inline void expect_compiles(const toolchain::Source& source) {
  namespace fs = std::filesystem;
  const toolchain::Toolchain tools = toolchain::locate("python3");
  fs::path cutlass = tools.cutlass;
  for (const char* place :
       {"/.venv/lib/python3.11/site-packages", "/.venv/lib/python3.12/site-packages"}) {
    const fs::path p = fs::path(TESSERA_SOURCE_DIR + std::string(place)) / "cutlass_library/source";
    if (cutlass.empty() && fs::exists(p)) cutlass = p;
  }
  if (tools.nvcc.empty()) GTEST_SKIP() << "no nvcc on this machine: the instance is not compiled";
  if (source.cutlass && cutlass.empty()) GTEST_SKIP() << "no CUTLASS headers on this machine";
  const fs::path folder =
      fs::temp_directory_path() / ("tessera_compile_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  std::ofstream(folder / "k.cu") << source.text;
  const std::string root = TESSERA_SOURCE_DIR;
  const std::string digits = source.arch.substr(3);
  std::vector<std::string> argv = {tools.nvcc.string(),
                                   "-std=c++17",
                                   "-O1",
                                   "-cubin",
                                   "-gencode=arch=compute_" + digits + ",code=sm_" + digits,
                                   "-I" + root + "/include",
                                   "-I" + root + "/src/realize/cutlass/include"};
  if (source.cutlass) argv.push_back("-I" + (cutlass / "include").string());
  argv.insert(argv.end(), source.flags.begin(), source.flags.end());
  argv.insert(argv.end(), {"-o", (folder / "k.cubin").string(), (folder / "k.cu").string()});
  std::string command;
  for (const std::string& a : argv) command += "'" + a + "' ";
  const int status = std::system((command + " > " + (folder / "log").string() + " 2>&1").c_str());
  std::ifstream log(folder / "log");
  const std::string text((std::istreambuf_iterator<char>(log)), {});
  EXPECT_EQ(status, 0) << text.substr(0, 4000);
  EXPECT_EQ(text.find("C7510"), std::string::npos)
      << "ptxas serialized wgmma: " << text.substr(0, 600);
  fs::remove_all(folder);
}

}  // namespace tessera::realize::testing
