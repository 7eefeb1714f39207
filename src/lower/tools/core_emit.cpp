// core_emit DIR: the sources of the kernels that tests/gpu/core_kernels.py checks and times, a file
// each, and DIR/index.json with the commands that build them.
#include <fmt/format.h>

#include "base/files.h"
#include "base/json.h"
#include "toolchain/flags.h"

#include "core/testing/attention.h"
#include "core/testing/gemm.h"
#include "lower/lower.h"

namespace tessera {
namespace {

struct Case {
  std::string kind;  // "gemm": A, B, C and M, N, K; "attention": Q, K, V, O and TQ, TK, H, G, B
  std::string name;
  Result<core::Kernel> kernel;
  DType element;
  bool race;  // else it is checked alone
  Json facts = Json::object();
};

std::vector<Case> cases() {
  using core::testing::AttentionShape;
  using core::testing::GemmShape;
  std::vector<Case> all;
  const auto gemm = [&](const std::string& name, const GemmShape& s, bool race = true) {
    all.push_back({"gemm", fmt::format("{}x{}x{}_{}{}", s.bm, s.bn, s.bk, s.stages, name),
                   core::testing::gemm(s), s.element, race});
  };
  gemm("", {});
  gemm("_pair", {.cluster = 2});
  gemm("_pair_band4", {.band = 4, .cluster = 2});
  gemm("_pair_band16", {.band = 16, .cluster = 2});
  gemm("_pair", {.bn = 192, .stages = 4, .cluster = 2});
  gemm("_pair_1buffer", {.bn = 192, .stages = 5, .cluster = 2, .buffers = 1});
  gemm("", {.bn = 128, .stages = 5});
  gemm("_pair", {.bn = 128, .stages = 5, .cluster = 2});
  gemm("_pair_f16", {.element = DType::float16, .cluster = 2}, false);
  gemm("_beside", {.cluster = 2, .beside = true});
  constexpr DType e4m3 = DType::float8_e4m3fn;
  gemm("_e4m3", {.bk = 128, .element = e4m3});
  gemm("_e4m3_pair", {.bk = 128, .element = e4m3, .cluster = 2});
  gemm("_e4m3_pair", {.bn = 128, .bk = 128, .stages = 5, .element = e4m3, .cluster = 2});
  const auto attention = [&](const std::string& name, const AttentionShape& s, bool race = true) {
    all.push_back({"attention",
                   fmt::format("attention_{}x{}{}", s.queries, s.keys, name),
                   core::testing::attention(s),
                   s.element,
                   race,
                   {{"head_dim", s.head_dim}, {"causal", s.causal}}});
  };
  attention("", {});
  attention("_causal", {.causal = true});
  attention("", {.keys = 176});
  attention("_noturns", {.turns = false});
  attention("_64", {.head_dim = 64}, false);
  attention("_f16_causal", {.causal = true, .element = DType::float16}, false);
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
    const Result<lower::CudaSource> source =
        c.kernel ? lower::lower(*c.kernel) : Result<lower::CudaSource>(error(c.kernel.error()));
    if (!source) {
      fmt::print(stderr, "{}: {}", c.name, to_text(source.error()));
      return 1;
    }
    write_file_atomically(folder + "/" + c.name + ".cu", source->text);
    index.push_back({{"name", c.name},
                     {"kind", c.kind},
                     {"dtype", name_of(c.element)},
                     {"facts", c.facts},
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
