// CUTLASS 3.x on Hopper: TMA, wgmma and warp specialization from the collective builder, the
// epilogue as one fused visitor, persistent and stream-K schedulers.
#include "realize/common/cutlass_text.h"
#include "realize/realize.h"

namespace tessera::realize {
namespace {

/// tf32 and fp8 read B in k direction only; a product that has it otherwise is stated transposed,
/// where the same matrix is A and goes through registers. (The collective builder's own exchange
/// returns wrong values.)
Result<GemmProblem> restate(GemmProblem p) {
  if (size_of(p.a.dtype) == 2 || p.b.columns_contiguous) {
    if (size_of(p.a.dtype) == 1 && !p.a.columns_contiguous) {
      return error(fail(unsupported_gemm, "fp8 needs both operands contiguous in k"));
    }
    return p;
  }
  if (!p.a.columns_contiguous || size_of(p.a.dtype) == 1) {
    return error(fail(unsupported_gemm, "{} operands: B is contiguous in n and A {}",
                      name_of(p.a.dtype), p.a.columns_contiguous ? "in k" : "in m")
                     .expect("at least one operand contiguous in k (fp8: both)"));
  }
  return exchange(p);
}

Status check(const GemmProblem& p, const arch::Arch& arch) {
  if (!arch.has("wgmma") || !arch.has("tma")) {
    return error(fail(unsupported_gemm, "{} has no wgmma and TMA", arch.name));
  }
  if (p.precision == Precision::fp32) {
    return error(fail(unsupported_gemm, "the tensor core's tf32 is not of fp32 accuracy")
                     .help("cutlass_gemm_fp32 splits each operand in two tf32 parts"));
  }
  if (p.outputs.size() != 1) {
    return error(fail(unsupported_gemm, "{} results", p.outputs.size()).expect("one"));
  }
  for (const Matrix* m : {&p.a, &p.b, &p.outputs.front()}) {
    if (!m->aligned()) {
      return error(fail(unsupported_gemm, "a matrix is not aligned for TMA")
                       .expect("strides and offset that are multiples of 16 bytes")
                       .but_found("stride {}, batch stride {}, offset {} of {}", m->ld, m->batch,
                                  m->offset, name_of(m->dtype)));
    }
  }
  return {};
}

Candidate candidate(const GemmProblem& p, const Sm90Config& c, double ms, const arch::Arch& arch) {
  Candidate out;
  out.realizer = "cutlass_gemm";
  out.config = c.to_json();
  out.config["stages"] =
      c.stages ? c.stages : mainloop_stages(c, needs_of(p), arch.shared_memory_per_block);
  out.config["transposed"] = p.exchanged;
  out.predicted_ms = ms;
  LibraryText text;
  text.name = "cutlass_gemm";
  text.arch = arch.name;
  text.includes =
      "#include \"tessera_cutlass/functors.hpp\"\n#include \"tessera_cutlass/sm90_launch.hpp\"";
  text.body = sm90_product(p, c, "product", 1);
  text.products = {"product"};
  text.tail = "return 0;";
  text.ints = {"scratch"};
  for (std::string& name : product_ints(p, "")) text.ints.push_back(std::move(name));
  toolchain::Source source;
  source.name = "cutlass_gemm";
  source.text = library(text);
  source.arch = arch.name;
  source.flags = cutlass_flags();
  source.cutlass = true;
  out.source = std::move(source);
  for (const Knobs& knobs : sm90_knobs(c, p, arch)) {
    Launch launch;
    launch.knobs = knobs.to_json();
    launch.ints = {0};
    for (const int64_t v : product_values(p, knobs)) launch.ints.push_back(v);
    out.launches.push_back(std::move(launch));
  }
  return out;
}

Result<Space> realize(const rules::Pattern& pattern, const graph::Graph&, const arch::Arch& arch) {
  const auto* body = dynamic_cast<const rules::GemmBody*>(pattern.body.get());
  if (body == nullptr) return error(fail(unsupported_gemm, "not a gemm pattern"));
  TESSERA_TRY(stated, gemm_problem(*body, pattern.precision));
  TESSERA_TRY(problem, restate(std::move(stated)));
  TESSERA_CHECK(check(problem, arch));
  const ConfigSpace configs = sm90_configs(problem, arch);
  Space space;
  space.pruned.assign(configs.pruned.begin(), configs.pruned.end());
  for (const auto& [c, ms] : configs.configs) {
    if (space.candidates.size() == 48) break;  // beyond, predictions are more than twice the best
    space.candidates.push_back(candidate(problem, c, ms, arch));
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
