// Products with too few tiles for the machine, in plain CUDA C++: slices of K as a batch with fp32
// sums, then a reduction that applies the epilogue.
#include "realize/common/sm90_library.h"
#include "realize/common/wgmma_library.h"

namespace tessera::realize {
namespace {

Result<Space> realize(const rules::Pattern& pattern, const graph::Graph&, const arch::Arch& arch) {
  const auto* body = dynamic_cast<const rules::GemmBody*>(pattern.body.get());
  if (body == nullptr) return error(fail(unsupported_gemm, "not a gemm pattern"));
  TESSERA_TRY(stated, gemm_problem(*body, pattern.precision));
  if (stated.outputs.size() != 1) {
    return error(fail(unsupported_gemm, "{} results", stated.outputs.size())
                     .expect("one: the reduction writes it"));
  }
  if (stated.l != 1) return error(fail(unsupported_gemm, "{} batches fill the machine", stated.l));
  TESSERA_TRY(problem, restate_for_rows(std::move(stated), arch));
  const int64_t blocks = ((problem.m + 127) / 128) * ((problem.n + 127) / 128);
  if (blocks > arch.multiprocessors) {
    return error(fail(unsupported_gemm, "{} blocks of 128 x 128 fill the machine without slicing K",
                      blocks));
  }
  return wgmma_sliced_space("wgmma_split_k", problem, arch, 16);
}

}  // namespace

extern const Realizer wgmma_split_k{
    "wgmma_split_k", "wgmma_gemm over slices of K as a batch, with a fused reduction",
    Kind::synthesized, "gemm", realize};

}  // namespace tessera::realize
