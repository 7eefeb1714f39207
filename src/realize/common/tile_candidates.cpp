#include "realize/common/tile_candidates.h"

#include "base/text.h"
#include "realize/common/programmatic_launch.h"
#include "tile/emit.h"

namespace tessera::realize {

std::vector<tile::Tensor> launch_tensors(const rules::Pattern& pattern, const graph::Graph& g) {
  std::vector<tile::Tensor> out;
  const auto add = [&](graph::ValueId v, const std::string& name, tile::Access access) {
    const graph::TensorType& t = g.value(v).type;
    out.push_back({.name = name,
                   .element = t.dtype,
                   .shape = t.shape,
                   .strides = t.strides,
                   .access = access});
  };
  // Names by position: the same computation at two places of a network must give the same text.
  for (std::size_t i = 0; i < pattern.inputs.size(); ++i) {
    add(pattern.inputs[i], fmt::format("in{}", i), tile::Access::input);
  }
  for (std::size_t i = 0; i < pattern.outputs.size(); ++i) {
    add(pattern.outputs[i], fmt::format("out{}", i), tile::Access::output);
  }
  return out;
}

tile::build::StridedView strided(const rules::TensorView& v) {
  return {.tensor = v.tensor, .strides = v.strides, .offset = v.offset};
}

pointwise::Target target_of(const arch::Arch& arch) {
  return arch.device == "cuda" ? pointwise::Target::cuda : pointwise::Target::host;
}

Result<Candidate> tile_candidate(std::string_view realizer, const tile::Program& program,
                                 Json config, const arch::Arch& arch) {
  const pointwise::Target target = target_of(arch);
  TESSERA_TRY(emitted, tile::emit(program, target));
  Candidate c{
      .realizer = std::string(realizer), .kind = Kind::synthesized, .config = std::move(config)};
  toolchain::Source source{
      .name = program.name, .text = std::move(emitted.source), .arch = std::string(arch.name)};
  if (target == pointwise::Target::host) {
    source.language = toolchain::Language::cxx;
    for (const std::string& flag : split(tile::host_flags(), ' ')) {
      if (!flag.empty()) source.flags.push_back(flag);
    }
  } else {
    source.flags.push_back(std::string(arch.nvcc_code));
    add_programmatic_launch(arch, source);
  }
  c.source = std::move(source);
  c.launches = {Launch{}};
  return c;
}

}  // namespace tessera::realize
