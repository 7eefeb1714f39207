#include "realize/common/tile_slices.h"

#include <memory>
#include <numeric>

#include "base/integers.h"
#include "realize/common/kernel_files.h"
#include "realize/common/proof.h"
#include "realize/common/tile_gemm_kernel.h"

#include "core/verify.h"
#include "language/language.h"
#include "lower/sequence.h"

namespace tessera::realize {
namespace {

using Constants = std::map<std::string, language::Constant>;

language::Constant element(DType t) {
  return language::Constant(std::string(short_name(t)));
}
language::Constant integer(int64_t v) {
  return language::Constant(v);
}

/// Of a block of the sum: as many as leave a block for each multiprocessor.
int64_t warps_of(const GemmProblem& p, const arch::Arch& arch) {
  const int64_t columns = ceil_div(p.n, 128);
  for (const int64_t warps : {16, 8})
    if (ceil_div(p.m, warps) * columns >= arch.multiprocessors) return warps;
  return 4;
}

/// Slices that are on their way at once.
int64_t ahead_of(const TileSlices& c) {
  return c.counts.front() <= 4 ? 4 : c.counts.front() <= 12 ? 8 : 16;
}

/// Of both files that make sums of slices.
Constants partial_constants(const GemmProblem& q, const TileSlices& c) {
  return {{"BM", integer(c.rows)},
          {"ROWS", integer(c.warpgroup_rows)},
          {"BN", integer(c.columns)},
          {"STAGES", integer(c.stages)},
          {"CLUSTER", integer(int64_t{c.cluster_m} * c.cluster_n)},
          {"P_ORDER", integer(c.turned ? 2 : 1)},
          {"M_BELOW", integer(q.m >= q.n ? TileSlices::longer_below : TileSlices::shorter_below)},
          {"N_BELOW", integer(q.m >= q.n ? TileSlices::shorter_below : TileSlices::longer_below)},
          {"N_MULTIPLE", integer(std::gcd(q.n, int64_t{8}))},
          {"SPREAD", integer(c.spread ? 1 : 0)}};
}

/// What kernels/gemm_slices.py says besides.
Constants general_constants(const GemmProblem& q, const TileSlices& c) {
  const auto order = [](const Matrix& m) { return integer(m.columns_contiguous ? 1 : 2); };
  Constants all = partial_constants(q, c);
  all.merge(Constants{{"ELEMENT", element(q.a.dtype)},
                      {"BK", integer(tile_gemm_depth(q))},
                      {"BESIDE", integer(c.cluster_n > 1 ? 1 : 0)},
                      {"A_ORDER", order(q.a)},
                      {"B_ORDER", order(q.b)},
                      {"ROUND", integer(q.a.dtype == DType::float32 ? 1 : 0)}});
  return all;
}

Constants reduce_constants(const GemmProblem& p, const TileSlices& c, const arch::Arch& arch) {
  const Matrix& d = p.outputs.front();
  return {{"RESULT", element(d.dtype)},
          {"WARPS", integer(warps_of(p, arch))},
          {"AHEAD", integer(ahead_of(c))},
          {"N_MULTIPLE", integer(std::gcd(p.n, int64_t{8}))},
          {"C_MULTIPLE", integer(d.alignment())},
          {"epilogue", language::Constant(std::string("epilogue"))}};
}

Result<core::Kernel> kernel_of(const Source& source, const char* name,
                               const language::Options& options, const arch::Arch& arch) {
  TESSERA_TRY(kernel, language::elaborate(source, name, options));
  for (const Diagnostic& finding : core::verify(kernel, arch)) return error(finding);
  return kernel;
}

/// The sums of slices of the product `q`.
Result<core::Kernel> partial_of(const GemmProblem& q, const TileSlices& c, const arch::Arch& arch) {
  const bool registers = tile_gemm_through_registers(q);
  const std::string file = registers ? "gemm_slices_tf32.py" : "gemm_slices.py";
  return kernel_of(Source("kernels/" + file, std::string(kernel_file(file))), "partial",
                   {.constants = registers ? partial_constants(q, c) : general_constants(q, c)},
                   arch);
}

/// The slices lie one behind the other, and each as C does, with rows of whole 16 bytes.
std::map<std::string, int64_t> values_of(const GemmProblem& p, int64_t slices) {
  std::map<std::string, int64_t> v = tile_gemm_values(p);
  v["S"] = slices;
  v["P_STRIDE"] = round_up(p.n, int64_t{4});
  v["P_SLICE"] = v["P_STRIDE"] * p.m;
  return v;
}

}  // namespace

Json TileSlices::to_json(const GemmProblem& p, const arch::Arch& arch) const {
  Json j = {{"tile", {rows, columns, tile_gemm_depth(p)}},
            {"warpgroup_rows", warpgroup_rows},
            {"cluster", {cluster_m, cluster_n}},
            {"schedule", "cooperative"},
            {"epilogue", "reduction"},
            {"stages", stages},
            {"scheduler", "persistent"},
            {"slices", spread ? "interleaved" : "runs"},
            {"split", "slices"},
            {"product", turned ? "turned" : "as it is"},
            {"reduction", {warps_of(p, arch), ahead_of(*this)}}};
  if (tile_gemm_through_registers(tile_slices_product(*this, p))) j["mainloop"] = "registers";
  return j;
}

Result<TileSlicesKernels> tile_slices_kernels(const GemmProblem& p, const TileSlices& c,
                                              const arch::Arch& arch) {
  TESSERA_TRY(epilogue, epilogue_function(p));
  const Source source("kernels/gemm_slices.py",
                      std::string(kernel_file("gemm_slices.py")) + epilogue);
  TESSERA_TRY(partial, partial_of(tile_slices_product(c, p), c, arch));
  TESSERA_TRY(reduce, kernel_of(source, "reduce",
                                {.constants = reduce_constants(p, c, arch),
                                 .means = meaning_of(p, "sum(P[s, i, j], s)")},
                                arch));
  return TileSlicesKernels{std::move(partial), std::move(reduce)};
}

Candidate tile_slices_sketch(const GemmProblem& p, const TileSlices& c, double ms,
                             const arch::Arch& arch) {
  Candidate out;
  out.realizer = "tile_gemm";
  out.config = c.to_json(p, arch);
  out.config["transposed"] = p.exchanged;
  out.predicted_ms = ms;
  return out;
}

Status write_tile_slices(Candidate& out, const GemmProblem& p, const TileSlices& c,
                         const arch::Arch& arch) {
  TESSERA_TRY(made, tile_slices_kernels(p, c, arch));
  const auto partial = std::make_shared<const core::Kernel>(std::move(made.partial));
  const auto reduce = std::make_shared<const core::Kernel>(std::move(made.reduce));
  // What `reduce` reads at [s, i, j] is what `partial` wrote there, or turned at [s, j, i].
  const char *m = c.turned ? "N" : "M", *n = c.turned ? "M" : "N";
  lower::Options options;
  options.describe_name = out.realizer;
  const auto same = [](const char* of_partial, const char* of_reduce) {
    return lower::Sequence::Same{0, of_partial, 1, of_reduce};
  };
  TESSERA_TRY(lowered,
              lower::lower(lower::Sequence{.kernels = {partial.get(), reduce.get()},
                                           .passed = {{0, "P", 1, "P"}},
                                           .agree = {same("S", "S"), same("P_STRIDE", "P_STRIDE"),
                                                     same("P_SLICE", "P_SLICE"), same(m, "M"),
                                                     same(n, "N")}},
                           options));
  out.source = toolchain::Source{.name = out.realizer,
                                 .text = lowered.text,
                                 .arch = std::string(arch.name),
                                 .prove = proof_of_all({proof_of(partial), proof_of(reduce)})};
  const GemmProblem q = tile_slices_product(c, p);
  for (const int64_t slices : c.counts) {
    Launch launch;
    launch.knobs = {{"splits", slices}};
    const std::map<std::string, int64_t> first = values_of(q, slices),
                                         second = values_of(p, slices);
    for (const std::string& name : lowered.ints) {
      const std::string own = name.substr(name.find('_') + 1);
      const bool of_sums = own.starts_with("P_");
      launch.ints.push_back(name.starts_with("partial_") && !of_sums ? first.at(own)
                                                                     : second.at(own));
    }
    out.launches.push_back(std::move(launch));
  }
  return {};
}

}  // namespace tessera::realize
