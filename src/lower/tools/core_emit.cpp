// core_emit DIR: the sources of the products that tests/gpu/core_gemm.py checks and times, a file
// each, and DIR/index.json with the commands that build them.
#include <fmt/format.h>

#include "base/files.h"
#include "base/json.h"
#include "toolchain/flags.h"

#include "core/testing/gemm.h"
#include "lower/lower.h"

namespace tessera {
namespace {

struct Case {
  std::string name;
  core::testing::GemmShape shape;
  bool race = true;  // else it is checked alone
};

std::vector<Case> cases() {
  using core::testing::GemmShape;
  std::vector<Case> all;
  const auto add = [&](const std::string& name, const GemmShape& s, bool race = true) {
    all.push_back({fmt::format("{}x{}x{}_{}{}", s.bm, s.bn, s.bk, s.stages, name), s, race});
  };
  add("", {});
  add("_pair", {.cluster = 2});
  add("_pair_band4", {.band = 4, .cluster = 2});
  add("_pair_band16", {.band = 16, .cluster = 2});
  add("_pair", {.bn = 192, .stages = 4, .cluster = 2});
  add("_pair_1buffer", {.bn = 192, .stages = 5, .cluster = 2, .buffers = 1});
  add("_pair", {.bn = 128, .stages = 5, .cluster = 2});
  add("_pair_f16", {.element = DType::float16, .cluster = 2}, false);
  return all;
}

/// The commands of a machine with everything, with places for its paths.
Json commands_of(const std::string& name, const std::string& text) {
  toolchain::Toolchain tools;
  tools.nvcc = "{nvcc}";
  tools.cxx = "{cxx}";
  tools.own_include = "{own}";
  tools.host_includes = {"{cuda}/include", "{cuda}/include/cccl"};
  tools.host_runtime = "{cuda}/lib64";
  toolchain::Source source;
  source.name = name;
  source.text = text;
  source.arch = "sm_90a";
  return toolchain::compile_commands(tools, source, "{source}", "{output}");
}

int run(const std::string& folder) {
  Json index = Json::array();
  for (const Case& c : cases()) {
    const Result<core::Kernel> kernel = core::testing::gemm(c.shape);
    const Result<lower::CudaSource> source =
        kernel ? lower::lower(*kernel) : Result<lower::CudaSource>(error(kernel.error()));
    if (!source) {
      fmt::print(stderr, "{}: {}", c.name, to_text(source.error()));
      return 1;
    }
    write_file_atomically(folder + "/" + c.name + ".cu", source->text);
    index.push_back({{"name", c.name},
                     {"dtype", name_of(c.shape.element)},
                     {"race", c.race},
                     {"commands", commands_of(c.name, source->text)}});
  }
  write_file_atomically(folder + "/index.json", index.dump(1) + "\n");
  return 0;
}

}  // namespace
}  // namespace tessera

int main(int count, char** arguments) {
  if (count != 2) {
    fmt::print(stderr, "usage: core_emit DIR\n");
    return 3;
  }
  return tessera::run(arguments[1]);
}
