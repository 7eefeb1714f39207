// Batched products on Hopper with arrays of pointers: CUTLASS' kernel for batches (or groups) that
// lie anywhere. A batch with one stride does not need it, but its scheduler and tensor maps differ,
// so it competes.
#include "realize/common/sm90_library.h"

namespace tessera::realize {
namespace {

// A batch's tensor maps are rewritten and fetched before its first tile.
constexpr double batch_change_ms = 0.0015;
constexpr std::size_t most_candidates = 8;

Status check(const GemmProblem& p, const arch::Arch& arch) {
  TESSERA_CHECK(check_sm90(p, arch));
  if (p.l == 1) return error(fail(unsupported_gemm, "one batch").expect("several"));
  const int source = p.source_leaf();
  for (std::size_t i = 0; i < p.leaves.size(); ++i) {
    const Matrix& x = p.leaves[i].matrix;
    // The source goes by pointers, the visitor finds a batch of the others by one stride.
    if (p.inner == p.l || x.outer == p.inner * x.batch || static_cast<int>(i) == source) continue;
    return error(fail(unsupported_gemm, "an operand of the epilogue has two batch strides")
                     .expect("one, or the first operand of the result's extents"));
  }
  if (p.outputs.size() != 1) {
    return error(fail(unsupported_gemm, "{} results of a batch by pointers", p.outputs.size())
                     .expect("one"));
  }
  if (size_of(p.a.dtype) != 2 && !(p.a.columns_contiguous && p.b.columns_contiguous)) {
    return error(fail(unsupported_gemm, "{} by pointers needs both operands contiguous in k",
                      name_of(p.a.dtype)));
  }
  return {};
}

Result<Space> realize(const rules::Pattern& pattern, const graph::Graph&, const arch::Arch& arch) {
  TESSERA_TRY(body, gemm_body(pattern));
  TESSERA_TRY(problem, pointer_problem(*body, pattern.precision));
  TESSERA_CHECK(check(problem, arch));
  const ConfigSpace configs = sm90_configs(problem, arch);
  Space space;
  space.pruned.assign(configs.pruned.begin(), configs.pruned.end());
  for (const auto& [stock, ms] : configs.configs) {
    if (space.candidates.size() == most_candidates) break;
    if (stock.scheduler == Scheduler::stream_k) continue;
    Sm90Config c = stock;
    c.pointers = true;
    c.store_buffers = 0;  // another epilogue of CUTLASS
    const double changes = static_cast<double>(problem.l) / arch.multiprocessors;
    space.candidates.push_back(product_candidate("cutlass_gemm_array", problem, c,
                                                 ms + batch_change_ms * (1 + changes), arch));
  }
  if (space.candidates.empty()) return error(fail(unsupported_gemm, "no tile fits"));
  return space;
}

}  // namespace

extern const Realizer cutlass_gemm_array{"cutlass_gemm_array",
                                         "CUTLASS 3.x over batches given by arrays of pointers",
                                         Kind::synthesized, "gemm", realize};

}  // namespace tessera::realize
