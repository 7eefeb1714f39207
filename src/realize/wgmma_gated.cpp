// Gated MLPs as one product with both weights (tessera_wgmma/product.h): half of a tile's columns
// are of the gate, half of the value, and meet in one thread's accumulators.
#include "realize/common/sm90_library.h"
#include "realize/common/wgmma_library.h"

namespace tessera::realize {
namespace {

Result<Space> realize(const rules::Pattern& pattern, const graph::Graph&, const arch::Arch& arch) {
  const auto* body = dynamic_cast<const rules::GatedMlpBody*>(pattern.body.get());
  if (body == nullptr) return error(fail(unsupported_gemm, "not a gated_mlp pattern"));
  TESSERA_TRY(stated, paired_problem(*body, pattern.precision));
  if (pattern.precision == Precision::fp32)
    return error(fail(unsupported_gemm, "two products in one of split operands"));
  TESSERA_TRY(problem, restate_for_rows(std::move(stated), arch));
  return wgmma_space("wgmma_gated", problem, arch, 24);
}

}  // namespace

extern const Realizer wgmma_gated{
    "wgmma_gated", "both weights of a gated MLP in one product of plain CUDA C++ by wgmma",
    Kind::synthesized, "gated_mlp", realize};

}  // namespace tessera::realize
