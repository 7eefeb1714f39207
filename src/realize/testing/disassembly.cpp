#include "realize/testing/disassembly.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <iostream>
#include <regex>
#include <sstream>

#include "base/source_folder.h"
#include "realize/testing/run_logged.h"

namespace tessera::realize::testing {
namespace {

/// Beside nvcc, or from the Python package of triton; empty when this machine has none.
std::filesystem::path disassembler(const toolchain::Toolchain& tools) {
  namespace fs = std::filesystem;
  std::vector<fs::path> places = {tools.nvcc.parent_path()};
  std::error_code none;  // no such folder: no places
  for (const auto& python : fs::directory_iterator(source_folder() + "/.venv/lib", none))
    places.push_back(python.path() / "site-packages/triton/backends/nvidia/bin");
  for (const fs::path& p : places) {
    if (fs::exists(p / "cuobjdump")) return p / "cuobjdump";
  }
  return {};
}

}  // namespace

std::string kernel_without_wait(const std::string& listing) {
  static const std::regex anything(R"(\b(LDG|STG|LDGSTS|LD|ST|RED|ATOMG|ATOM|UTMALDG|UTMASTG)\b)");
  static const std::regex tiles(R"(\bUTMALDG\b)");
  std::istringstream lines(listing);
  std::string kernel, missing;
  bool waited = true;
  for (std::string line; std::getline(lines, line);) {
    if (const std::size_t at = line.find("Function : "); at != std::string::npos) {
      if (!waited) missing = kernel;
      kernel = line.substr(at + 11);
      waited = false;
    }
    waited = waited || line.find("ACQBULK") != std::string::npos;
    const bool by_role = kernel.find("device_kernel") != std::string::npos;
    if (!waited && std::regex_search(line, by_role ? tiles : anything)) missing = kernel;
    if (!missing.empty()) return missing;
  }
  return waited ? "" : kernel;
}

void expect_waits(const toolchain::Toolchain& tools, const std::filesystem::path& cubin) {
  const std::filesystem::path tool = disassembler(tools);
  if (tool.empty()) {
    std::cout << "no cuobjdump on this machine: the waits are not checked\n";
    return;
  }
  // The tool calls nvdisasm, which lies beside it.
  const auto [status, listing] =
      run_logged({"env", "PATH=" + tool.parent_path().string() + ":" + std::getenv("PATH"),
                  tool.string(), "-sass", cubin.string()},
                 cubin.parent_path());
  EXPECT_EQ(status, 0) << listing.substr(0, 1000);
  EXPECT_NE(listing.find("Function : "), std::string::npos);
  EXPECT_EQ(kernel_without_wait(listing), "");
}

}  // namespace tessera::realize::testing
