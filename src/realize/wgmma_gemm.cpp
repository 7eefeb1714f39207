// Products by TMA and wgmma in plain CUDA C++ (tessera_wgmma/product.h): what CUTLASS' collectives
// do for 16-bit operands, in tf32 and at fp32 accuracy, without their templates, so that they build
// in seconds.
#include "realize/common/sm90_library.h"
#include "realize/common/wgmma_library.h"

namespace tessera::realize {
namespace {

Result<Space> realize(const rules::Pattern& pattern, const graph::Graph&, const arch::Arch& arch) {
  const auto* body = dynamic_cast<const rules::GemmBody*>(pattern.body.get());
  if (body == nullptr) return error(fail(unsupported_gemm, "not a gemm pattern"));
  const bool two_strides = body->a.shape.size() > 3;
  TESSERA_TRY(stated, two_strides ? pointer_problem(*body, pattern.precision)
                                  : parted_problem(*body, pattern.precision));
  TESSERA_TRY(problem, restate_for_rows(std::move(stated), arch));
  return wgmma_space("wgmma_gemm", problem, arch, 32);
}

}  // namespace

extern const Realizer wgmma_gemm{
    "wgmma_gemm",
    "TMA and wgmma in plain CUDA C++ that builds in seconds: 16-bit operands, "
    "tf32 along K, and fp32 as two tf32 parts",
    Kind::synthesized, "gemm", realize};

}  // namespace tessera::realize
