// CUTLASS 3.x on Hopper: TMA, wgmma and warp specialization from the collective builder, the
// epilogue as one fused visitor, persistent and stream-K schedulers.
#include "realize/common/sm90_library.h"

namespace tessera::realize {
namespace {

Result<Space> realize(const rules::Pattern& pattern, const graph::Graph&, const arch::Arch& arch) {
  const auto* body = dynamic_cast<const rules::GemmBody*>(pattern.body.get());
  if (body == nullptr) return error(fail(unsupported_gemm, "not a gemm pattern"));
  TESSERA_TRY(stated, gemm_problem(*body, pattern.precision));
  if (pattern.precision == Precision::fp32) {
    return error(fail(unsupported_gemm, "the tensor core's tf32 is not of fp32 accuracy")
                     .help("cutlass_gemm_fp32 splits each operand in two tf32 parts"));
  }
  TESSERA_TRY(problem, restate_for_wgmma(std::move(stated)));
  TESSERA_CHECK(check_sm90(problem, arch));
  const ConfigSpace configs = sm90_configs(problem, arch);
  Space space;
  space.pruned.assign(configs.pruned.begin(), configs.pruned.end());
  for (const auto& [c, ms] : configs.configs) {
    if (space.candidates.size() == 48) break;  // beyond, predictions are more than twice the best
    space.candidates.push_back(product_candidate("cutlass_gemm", problem, c, ms, arch));
  }
  if (space.candidates.empty()) {
    return error(
        fail(unsupported_gemm, "no tile fits {} x {} x {}", problem.m, problem.n, problem.k));
  }
  return space;
}

}  // namespace

extern const Realizer cutlass_gemm;
const Realizer cutlass_gemm{"cutlass_gemm",
                            "CUTLASS 3.x collective (TMA, wgmma) with a fused epilogue visitor",
                            Kind::synthesized, "gemm", realize};

}  // namespace tessera::realize
