// CUTLASS 3.x on Hopper: TMA, wgmma and warp specialization from the collective builder, the
// epilogue as one fused visitor or as functions of parts of the columns, persistent and stream-K
// schedulers.
#include "realize/common/sm90_library.h"

namespace tessera::realize {
namespace {

Result<Space> realize(const rules::Pattern& pattern, const graph::Graph&, const arch::Arch& arch) {
  TESSERA_TRY(body, gemm_body(pattern));
  TESSERA_TRY(stated, parted_problem(*body, pattern.precision));
  TESSERA_TRY(problem, restate_for_wgmma(std::move(stated)));
  TESSERA_CHECK(check_sm90(problem, arch));
  // Beyond 48, predictions are more than twice the best.
  return product_space("cutlass_gemm", problem, arch, 48);
}

}  // namespace

extern const Realizer cutlass_gemm{
    "cutlass_gemm",
    "CUTLASS 3.x collective (TMA, wgmma) with a fused epilogue visitor, "
    "or one a part of the columns",
    Kind::synthesized, "gemm", realize};

}  // namespace tessera::realize
