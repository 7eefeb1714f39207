// Gated MLPs on Hopper as two products in one library: the value's into the workspace, then the
// gate's, whose epilogue reads it as its source operand. Saves the unfused multiply, and one
// library holds both.
#include "realize/common/programmatic_launch.h"
#include "realize/common/sm90_library.h"

namespace tessera::realize {
namespace {

Candidate candidate(const GatedProblem& g, const Sm90Config& c, double ms, const arch::Arch& arch) {
  Candidate out;
  out.realizer = "cutlass_gated";
  out.config = c.to_json();
  out.config["stages"] = mainloop_stages(c, needs_of(g.gate), arch.shared_memory_per_block);
  out.config["products"] = 2;
  out.predicted_ms = ms;
  LibraryText text;
  text.name = "cutlass_gated";
  text.arch = arch.name;
  text.includes =
      "#include \"tessera_cutlass/functors.hpp\"\n#include \"tessera_cutlass/sm90_launch.hpp\"";
  text.ints = {"scratch"};
  for (std::string& name : product_ints(g.value, "value_")) text.ints.push_back(std::move(name));
  const int first = static_cast<int>(text.ints.size());
  for (std::string& name : product_ints(g.gate, "gate_")) text.ints.push_back(std::move(name));
  text.body = sm90_product(g.value, c, "value", 1) + sm90_product(g.gate, c, "gate", first);
  text.products = {"value", "gate"};
  text.apart = true;
  text.tail = "return 0;";
  toolchain::Source source;
  source.name = "cutlass_gated";
  source.text = library(text);
  source.arch = arch.name;
  source.flags = cutlass_flags({c.tile_n});
  source.cutlass = true;
  add_programmatic_launch(arch, source);
  out.source = std::move(source);
  const Matrix& scratch = g.value.outputs.front();
  for (const Knobs& knobs : sm90_knobs(c, g.gate, arch)) {
    Launch launch;
    launch.knobs = knobs.to_json();
    launch.ints = {g.value.m * scratch.ld * size_of(scratch.dtype)};
    for (const int64_t v : product_values(g.value, knobs)) launch.ints.push_back(v);
    for (const int64_t v : product_values(g.gate, knobs)) launch.ints.push_back(v);
    out.launches.push_back(std::move(launch));
  }
  return out;
}

Result<Space> realize(const rules::Pattern& pattern, const graph::Graph&, const arch::Arch& arch) {
  const auto* body = dynamic_cast<const rules::GatedMlpBody*>(pattern.body.get());
  if (body == nullptr) return error(fail(unsupported_gemm, "not a gated_mlp pattern"));
  if (pattern.precision == Precision::fp32) {
    return error(fail(unsupported_gemm, "the tensor core's tf32 is not of fp32 accuracy"));
  }
  TESSERA_TRY(g, gated_problem(*body, pattern.precision));
  TESSERA_TRY(value, restate_for_wgmma(std::move(g.value)));
  TESSERA_TRY(gate, restate_for_wgmma(std::move(g.gate)));
  g.value = std::move(value);
  g.gate = std::move(gate);
  if (g.value.exchanged != g.gate.exchanged) {
    return error(fail(unsupported_gemm, "the two weights lie in different orders"));
  }
  TESSERA_CHECK(check_sm90(g.value, arch));
  TESSERA_CHECK(check_sm90(g.gate, arch));
  const ConfigSpace configs = sm90_configs(g.gate, arch);
  Space space;
  space.pruned.assign(configs.pruned.begin(), configs.pruned.end());
  for (const auto& [c, ms] : configs.configs) {
    if (space.candidates.size() == 32) break;
    if (c.scheduler == Scheduler::stream_k) continue;
    space.candidates.push_back(candidate(g, c, ms + predict_ms(c, g.value, arch), arch));
  }
  if (space.candidates.empty()) return error(fail(unsupported_gemm, "no tile fits"));
  return space;
}

}  // namespace

extern const Realizer cutlass_gated{
    "cutlass_gated", "two CUTLASS 3.x products, the second's epilogue gates by the first",
    Kind::synthesized, "gated_mlp", realize};

}  // namespace tessera::realize
