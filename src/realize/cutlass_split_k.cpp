// Long K on Hopper: the K slices of one product as a strided batch with fp32 partial sums, then a
// reduction that applies the epilogue. Slices are runs of K, or alternate by the K tile, so that
// those which run at the same time read neighbouring memory. Shorter accumulation chains also lose
// fewer low bits in the tensor core.
#include "realize/common/sm90_library.h"

namespace tessera::realize {
namespace {

Result<Space> realize(const rules::Pattern& pattern, const graph::Graph&, const arch::Arch& arch) {
  TESSERA_TRY(body, gemm_body(pattern));
  TESSERA_TRY(stated, gemm_problem(*body, pattern.precision));
  if (stated.outputs.size() != 1) {
    return error(fail(unsupported_gemm, "{} results", stated.outputs.size())
                     .expect("one: the reduction writes it"));
  }
  if (stated.l != 1) return error(fail(unsupported_gemm, "{} batches fill the machine", stated.l));
  TESSERA_TRY(problem, restate_for_wgmma(std::move(stated)));
  TESSERA_CHECK(check_sm90(problem, arch));
  const int64_t blocks = ((problem.m + 127) / 128) * ((problem.n + 127) / 128);
  if (blocks > arch.multiprocessors) {
    return error(fail(unsupported_gemm, "{} blocks of 128 x 128 fill the machine without slicing K",
                      blocks));
  }
  // Slices multiply the blocks: rank tiles as for a batch of them.
  const int64_t guess = arch.multiprocessors / blocks;
  GemmProblem batch = sliced(problem, 1);
  batch.l = guess;
  batch.k = problem.k / guess + 1;
  const ConfigSpace configs = sm90_configs(batch, arch);
  const Sm90Needs needs = needs_of(problem);
  Space space;
  space.pruned.assign(configs.pruned.begin(), configs.pruned.end());
  for (const auto& [c, ms] : configs.configs) {
    if (c.scheduler == Scheduler::stream_k) continue;
    for (const bool interleaved : {false, true}) {
      if (interleaved && needs.a_in_registers) continue;  // that mainloop has one stride along K
      Sm90Config variant = c;
      variant.interleaved = interleaved;
      if (auto candidate = sliced_candidate("cutlass_split_k", problem, variant, arch)) {
        space.candidates.push_back(std::move(*candidate));
      }
    }
  }
  if (space.candidates.empty()) {
    return error(fail(unsupported_gemm, "no number of slices divides K = {}", problem.k));
  }
  diversify(space.candidates);
  if (space.candidates.size() > 24) space.candidates.resize(24);
  return space;
}

}  // namespace

extern const Realizer cutlass_split_k{
    "cutlass_split_k", "CUTLASS 3.x over K slices as a batch, with a fused reduction",
    Kind::synthesized, "gemm", realize};

}  // namespace tessera::realize
