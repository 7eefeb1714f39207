#include "realize/testing/compile.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/source_folder.h"
#include "realize/testing/disassembly.h"
#include "realize/testing/run_logged.h"
#include "toolchain/flags.h"

namespace tessera::realize::testing {
namespace {

/// Where the CUTLASS headers are; empty when this machine has none.
std::filesystem::path cutlass_source(const toolchain::Toolchain& tools) {
  namespace fs = std::filesystem;
  if (!tools.cutlass.empty()) return tools.cutlass;
  for (const char* place :
       {"/.venv/lib/python3.11/site-packages", "/.venv/lib/python3.12/site-packages"}) {
    const fs::path p = fs::path(source_folder() + place) / "cutlass_library/source";
    if (fs::exists(p)) return p;
  }
  return {};
}

/// A folder of this test, removed with it.
struct Scratch {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("tessera_compile_" + std::to_string(::getpid()));
  Scratch() { std::filesystem::create_directories(path); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { std::filesystem::remove_all(path); }
};

std::vector<std::string> nvcc_command(const toolchain::Toolchain& tools, const std::string& digits,
                                      const char* optimization) {
  const std::string& root = source_folder();
  return {tools.nvcc.string(),
          "-std=c++17",
          optimization,
          "-gencode=arch=compute_" + digits + ",code=sm_" + digits,
          "-I" + root + "/include",
          "-I" + (cutlass_source(tools) / "include").string()};
}

}  // namespace

bool quick_to_compile(const toolchain::Source& source) {
  return std::none_of(source.flags.begin(), source.flags.end(), [](const std::string& flag) {
    return flag.find("EXTENDED_MMA_SHAPES") != std::string::npos;
  });
}

void expect_compiles(const toolchain::Source& source, int spill_bytes) {
  const toolchain::Toolchain tools = toolchain::locate("python3");
  if (tools.nvcc.empty()) GTEST_SKIP() << "no nvcc on this machine: the instance is not compiled";
  if (source.cutlass && cutlass_source(tools).empty())
    GTEST_SKIP() << "no CUTLASS headers on this machine";
  const Scratch scratch;
  std::ofstream(scratch.path / "k.cu") << source.text;
  std::vector<std::string> argv = nvcc_command(tools, source.arch.substr(3), "-O1");
  argv.insert(argv.end(), {"-cubin", "-Xptxas", "-v"});
  argv.insert(argv.end(), source.flags.begin(), source.flags.end());
  argv.insert(argv.end(),
              {"-o", (scratch.path / "k.cubin").string(), (scratch.path / "k.cu").string()});
  const auto [status, text] = run_logged(argv, scratch.path);
  EXPECT_EQ(status, 0) << text.substr(0, 4000);
  EXPECT_EQ(text.find("C7510"), std::string::npos)
      << "ptxas serialized wgmma: " << text.substr(0, 600);
  if (std::count(source.flags.begin(), source.flags.end(), "-DTESSERA_PROGRAMMATIC_LAUNCH=1") > 0)
    expect_waits(tools, scratch.path / "k.cubin");
  for (std::size_t at = text.find("spill stores"); at != std::string::npos;
       at = text.find("spill stores", at + 1)) {
    const std::size_t number = text.rfind(',', at) + 1;
    EXPECT_LE(std::atoi(text.c_str() + number), spill_bytes) << "registers are spilled";
  }
}

void expect_host_side_compiles(const toolchain::Source& source) {
  toolchain::Toolchain tools = toolchain::locate("python3");
  tools.cutlass = cutlass_source(tools);
  tools.own_include = source_folder() + "/include";
  if (tools.host_runtime.empty() || tools.cutlass.empty())
    GTEST_SKIP() << "no CUDA or CUTLASS headers for a host side on this machine";
  ASSERT_EQ(toolchain::sides_of(tools, source), toolchain::Sides::apart);
  const Scratch scratch;
  std::ofstream(scratch.path / "k.cu") << source.text;
  std::ofstream(scratch.path / "k.cubin") << "";
  const auto commands =
      toolchain::compile_commands(tools, source, scratch.path / "k.cu", scratch.path / "k.so");
  ASSERT_EQ(commands.size(), 2U);
  const auto [status, text] = run_logged(commands.back(), scratch.path);
  EXPECT_EQ(status, 0) << text.substr(0, 4000);
}

void expect_runs_on_host(const std::string& file, bool plain) {
  const toolchain::Toolchain tools = toolchain::locate("python3");
  if (tools.nvcc.empty() || cutlass_source(tools).empty())
    GTEST_SKIP() << "no nvcc or no CUTLASS headers on this machine";
  const Scratch scratch;
  std::vector<std::string> argv = nvcc_command(tools, "90a", "-O1");
  if (plain) argv.insert(argv.end(), {"-x", "c++"});
  argv.insert(argv.end(),
              {"-DNDEBUG", "--expt-relaxed-constexpr", "-diag-suppress=20012", "-o",
               (scratch.path / "program").string(), source_folder() + "/tests/cutlass/" + file});
  const auto [status, text] = run_logged(argv, scratch.path);
  ASSERT_EQ(status, 0) << text.substr(0, 4000);
  const auto [result, output] = run_logged({(scratch.path / "program").string()}, scratch.path);
  EXPECT_EQ(result, 0) << output;
}

}  // namespace tessera::realize::testing
