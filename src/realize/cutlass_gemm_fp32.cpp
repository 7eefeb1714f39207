// fp32 accuracy on Hopper's tensor cores: each operand as two tf32 parts, three products,
// accumulators promoted to fp32 registers every 128 of k. The parts come from a pass before
// (packed) or are made on the way (inline).
#include "base/integers.h"
#include "realize/common/sm90_library.h"
#include "realize/common/split_model.h"

namespace tessera::realize {
namespace {

/// Both parts of a split element, as the packed operands hold them.
constexpr int64_t packed_bytes = 8;

std::vector<Sm90Config> configs() {
  std::vector<Sm90Config> all;
  for (const Mainloop mainloop : {Mainloop::split_packed, Mainloop::split_inline})
    for (const auto& [m, n] :
         {std::pair{128, 192}, {128, 176}, {128, 128}, {256, 96}, {64, 192}, {128, 64}})
      for (const auto& [cm, cn] : {std::pair{2, 1}, {1, 1}, {1, 2}})
        for (const Scheduler scheduler : {Scheduler::persistent, Scheduler::stream_k}) {
          Sm90Config c;
          c.tile_m = m;
          c.tile_n = n;
          c.tile_k = 16;
          c.cluster_m = cm;
          c.cluster_n = cn;
          c.schedule = m == 64 ? Schedule::pingpong : Schedule::cooperative;
          c.scheduler = scheduler;
          c.mainloop = mainloop;
          c.epilogue_n = n > 128 ? 16 : 0;
          all.push_back(c);
        }
  return all;
}

std::optional<std::string> refuse(const Sm90Config& c, const GemmProblem& p,
                                  const arch::Arch& arch) {
  if (c.mainloop == Mainloop::split_inline && c.schedule == Schedule::pingpong)
    return "inline split is cooperative";
  if (c.schedule == Schedule::pingpong && c.scheduler == Scheduler::stream_k)
    return "ping-pong forbids stream-K";
  const int64_t tiles_m = ceil_div(p.m, c.tile_m);
  const int64_t tiles_n = ceil_div(p.n, c.tile_n);
  if (c.cluster_m > tiles_m || c.cluster_n > tiles_n) return "cluster larger than the problem";
  if (c.scheduler == Scheduler::stream_k &&
      tiles_m * tiles_n * p.l >= int64_t{2} * arch.multiprocessors) {
    return "stream-K with many waves";
  }
  // Stages as the collectives' headers count them; a source operand and row vectors take from the
  // same memory.
  Sm90Needs needs = needs_of(p);
  const int64_t rows = c.schedule == Schedule::cooperative ? 128 : 64;
  const int64_t columns = c.epilogue_n ? c.epilogue_n : 32;
  const int64_t epilogue = (needs.source_bytes ? 4 : 2) * rows * columns * 4 +
                           int64_t{needs.row_vector_bytes} * c.tile_n + 1024;
  const int64_t both = c.tile_m + c.tile_n;
  const int64_t left = arch.shared_memory_per_block - 1024 - epilogue -
                       (c.mainloop == Mainloop::split_inline ? int64_t{3} * both * 128 : 0);
  if (left / (both * (c.mainloop == Mainloop::split_inline ? 64 : 128)) < 2)
    return "shared memory: fewer than 2 stages";
  return std::nullopt;
}

Status check(const GemmProblem& p, const arch::Arch& arch) {
  if (p.precision != Precision::fp32 || p.a.dtype != DType::float32) {
    return error(fail(unsupported_gemm, "{} operands at {} precision", name_of(p.a.dtype),
                      name_of(p.precision))
                     .expect("float32 at fp32 precision"));
  }
  return check_sm90(p, arch);
}

/// K slices as a batch, by the inline mainloop: a packed operand would cost its bytes three times.
void add_slices(const GemmProblem& p, const arch::Arch& arch, Space& space) {
  const int64_t blocks = ((p.m + 127) / 128) * ((p.n + 127) / 128);
  if (p.l != 1 || blocks * 2 > arch.multiprocessors) return;
  for (const Sm90Config& c : configs()) {
    if (c.mainloop != Mainloop::split_inline || c.scheduler != Scheduler::persistent ||
        refuse(c, p, arch))
      continue;
    if (auto candidate = sliced_candidate("cutlass_gemm_fp32", p, c, arch)) {
      const int64_t slices = candidate->launches.front().knobs["splits"];
      candidate->predicted_ms = predict_split_ms(c, sliced(p, slices), arch) + 0.01;
      space.candidates.push_back(std::move(*candidate));
    }
  }
}

Result<Space> realize(const rules::Pattern& pattern, const graph::Graph&, const arch::Arch& arch) {
  const auto* body = dynamic_cast<const rules::GemmBody*>(pattern.body.get());
  if (body == nullptr) return error(fail(unsupported_gemm, "not a gemm pattern"));
  TESSERA_TRY(problem, gemm_problem(*body, pattern.precision));
  TESSERA_CHECK(check(problem, arch));
  Space space;
  std::map<std::string, int> pruned;
  for (const Sm90Config& c : configs()) {
    if (const auto reason = refuse(c, problem, arch)) {
      ++pruned[*reason];
      continue;
    }
    space.candidates.push_back(product_candidate("cutlass_gemm_fp32", problem, c,
                                                 predict_split_ms(c, problem, arch), arch));
    if (c.mainloop == Mainloop::split_packed)
      space.candidates.back().workspace_bytes = packed_bytes * operand_elements(problem);
  }
  add_slices(problem, arch, space);
  space.pruned.assign(pruned.begin(), pruned.end());
  diversify(space.candidates);
  if (space.candidates.empty()) return error(fail(unsupported_gemm, "no tile fits"));
  return space;
}

}  // namespace

extern const Realizer cutlass_gemm_fp32{
    "cutlass_gemm_fp32", "three tf32 products with promoted accumulators, on CUTLASS 3.x",
    Kind::synthesized, "gemm", realize};

}  // namespace tessera::realize
