// From a tile program to a candidate: what the tile_* realizers share.
#pragma once

#include <vector>

#include "realize/realize.h"
#include "tile/build/common.h"

namespace tessera::realize {

/// The pattern's tensors as the launch passes them: inputs, then outputs, with the graph's shapes
/// and strides.
std::vector<tile::Tensor> launch_tensors(const rules::Pattern& pattern, const graph::Graph& g);
/// A rule's view as a builder's; the dims stay.
tile::build::StridedView strided(const rules::TensorView& v);
pointwise::Target target_of(const arch::Arch& arch);

/// The program as source text for this architecture, under this configuration.
Result<Candidate> tile_candidate(std::string_view realizer, const tile::Program& program,
                                 Json config, const arch::Arch& arch);

/// One candidate a configuration: build_program(config) gives a Result<Program>. A configuration
/// that does not fit is counted under its reason; when none fits, the last reason is the error.
template <class Config, class Build>
Result<Space> tile_space(std::string_view realizer, const std::vector<Config>& configs,
                         const arch::Arch& arch, Build&& build_program) {
  Space space;
  std::optional<Diagnostic> last;
  for (const Config& config : configs) {
    Result<Candidate> candidate = [&]() -> Result<Candidate> {
      TESSERA_TRY(program, build_program(config));
      return tile_candidate(realizer, program, to_json(config), arch);
    }();
    if (candidate) {
      space.candidates.push_back(std::move(*candidate));
    } else {
      last = candidate.error();
      space.pruned.emplace_back(last->message, 1);
    }
  }
  if (space.candidates.empty()) {
    if (last) return error(*std::move(last));
    return error(fail(Code{"TS0440", "realize.no_tile_schedule"},
                      "the tile compiler has no schedule for it on {}", arch.name));
  }
  return space;
}

}  // namespace tessera::realize
