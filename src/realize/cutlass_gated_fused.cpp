// Gated MLPs on Hopper as one product with the two weights: the mainloop reads both through one TMA
// view, the epilogue combines the accumulators that meet in one thread. Nothing is packed and no
// intermediate is written; tiles are half as wide as a plain product's.
#include "realize/common/sm90_library.h"

namespace tessera::realize {
namespace {

Result<Space> realize(const rules::Pattern& pattern, const graph::Graph&, const arch::Arch& arch) {
  const auto* body = dynamic_cast<const rules::GatedMlpBody*>(pattern.body.get());
  if (body == nullptr) return error(fail(unsupported_gemm, "not a gated_mlp pattern"));
  if (pattern.precision == Precision::fp32) {
    return error(fail(unsupported_gemm, "the tensor core's tf32 is not of fp32 accuracy"));
  }
  TESSERA_TRY(stated, paired_problem(*body, pattern.precision));
  TESSERA_TRY(problem, restate_for_wgmma(std::move(stated)));
  TESSERA_CHECK(check_sm90(problem, arch));
  return product_space("cutlass_gated_fused", problem, arch, 32);
}

}  // namespace

extern const Realizer cutlass_gated_fused{
    "cutlass_gated_fused", "one CUTLASS 3.x product with both weights, gated in its epilogue",
    Kind::synthesized, "gated_mlp", realize};

}  // namespace tessera::realize
