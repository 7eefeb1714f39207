// Gated MLPs written in the kernel language: kernels/gated.py with the pattern's epilogue as a
// function of both sums. They are proved before they are compiled.
#include <algorithm>
#include <numeric>

#include "base/integers.h"
#include "realize/common/kernel_files.h"
#include "realize/common/proof.h"
#include "realize/common/sm90_library.h"
#include "realize/common/tile_gemm_kernel.h"

#include "core/verify.h"
#include "language/language.h"
#include "lower/lower.h"

namespace tessera::realize {
namespace {

constexpr std::string_view name = "tile_gated";
constexpr int64_t most_extent = int64_t{1} << 20;  // as kernels/gated.py declares them
constexpr int widest_of_both = 128;  // columns of a tile that one wgmma makes of both products

/// A configuration of a product with as many columns as a tile has of both weights.
TileGemmConfig as_product(TileGemmConfig c) {
  c.columns *= 2;
  return c;
}

/// Columns that leave at a time.
int part_of(const TileGemmConfig& c, const GemmProblem& p) {
  // As of products (tile_gemm_part): buffers of two roles take a stage of the widest tiles, and a
  // row of a buffer is at most 128 bytes.
  const bool small_buffers = (c.turns() > 1 && c.columns == widest_of_both) ||
                             (!c.direct && size_of(p.outputs.front().dtype) > 2);
  return c.columns % 64 == 0 && !small_buffers ? 64 : 32;
}

int stages_of(const TileGemmConfig& c, const GemmProblem& p, int64_t shared_bytes) {
  constexpr int64_t barriers = 1024;  // with what alignment takes
  constexpr int64_t row_bytes = 128, store_buffers = 2;
  const int64_t most = c.turns() > 1 ? 8 : 12;  // as of products: what a proof takes
  const int64_t stores = c.direct ? 0
                                  : store_buffers * c.turns() * c.warpgroups() * 64 *
                                        part_of(c, p) * size_of(p.outputs.front().dtype);
  const int64_t stage = row_bytes * (c.rows + int64_t{2} * c.columns);
  return static_cast<int>(std::min((shared_bytes - stores - barriers) / stage, most));
}

std::optional<std::string> refuse(const TileGemmConfig& c, const GemmProblem& p,
                                  const arch::Arch& arch) {
  if (c.columns > widest_of_both && c.warpgroup_rows == 128)
    return "more accumulators than a thread has registers for";
  if (!p.b.columns_contiguous && c.columns % 64 != 0) return "N-major weights come in blocks of 64";
  if (!p.b.columns_contiguous && c.cluster_m == 2 && c.columns % 128 != 0)
    return "two blocks share N-major weights in blocks of 64";
  GemmProblem both = p;
  both.n *= 2;
  return tile_gemm_refuses(as_product(c), both, arch);
}

Sm90Config model_of(const TileGemmConfig& c, const GemmProblem& p) {
  Sm90Config m = tile_gemm_model(as_product(c), p);
  m.paired = true;
  return m;
}

/// With predicted ms, the best first.
std::vector<std::pair<TileGemmConfig, double>> configs_of(const GemmProblem& p,
                                                          const arch::Arch& arch,
                                                          std::map<std::string, int>& pruned) {
  std::vector<std::pair<TileGemmConfig, double>> out;
  // The tiles that are worked on at a time read the fewest rows and columns together where they
  // are about as high as both products' columns are wide: 2048. Half as many is a guess's rival.
  constexpr int rows_of_a_band = 2048;
  constexpr double less_reuse = 1.01;
  const auto consider = [&](TileGemmConfig c) {
    c.direct = !tile_gemm_stores_by_tma(p);
    c.stages = stages_of(c, p, arch.shared_memory_per_block);
    // Buffers for results of 32 bits may leave the ring too few slots.
    constexpr int enough = 4;
    if (!c.direct && size_of(p.outputs.front().dtype) == 4 && c.stages < enough) {
      c.direct = true;
      c.stages = stages_of(c, p, arch.shared_memory_per_block);
    }
    if (const auto reason = refuse(c, p, arch)) {
      ++pruned[*reason];
      return;
    }
    const double ms = predict_ms(model_of(c, p), p, arch);
    c.group = rows_of_a_band / (c.rows * c.cluster_m);
    out.emplace_back(c, ms);
    c.group /= 2;
    out.emplace_back(c, ms * less_reuse);
  };
  for (const int rows : {64, 128, 256})
    for (const int columns : {32, 64, 96, 128, 160})
      for (const auto& [cm, cn] : {std::pair{1, 1}, {2, 1}, {1, 2}})
        for (const Schedule schedule : {Schedule::cooperative, Schedule::pingpong})
          for (const int high : {64, 128})
            if (rows % high == 0)
              consider({.rows = rows,
                        .warpgroup_rows = high,
                        .columns = columns,
                        .cluster_m = cm,
                        .cluster_n = cn,
                        .schedule = schedule});
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& x, const auto& y) { return x.second < y.second; });
  return out;
}

Result<core::Kernel> kernel_of(const GemmProblem& p, const TileGemmConfig& c,
                               const arch::Arch& arch) {
  TESSERA_TRY(epilogue, epilogue_function(p));
  const Source source("kernels/gated.py", std::string(kernel_file("gated.py")) + epilogue);
  const Matrix& d = p.outputs.front();
  const auto element = [](DType t) { return language::Constant(std::string(short_name(t))); };
  const auto integer = [](int64_t v) { return language::Constant(v); };
  const auto order = [&](const Matrix& m) { return integer(m.columns_contiguous ? 1 : 2); };
  const language::Options options{
      .constants = {{"ELEMENT", element(p.a.dtype)},
                    {"RESULT", element(d.dtype)},
                    {"BM", integer(c.rows)},
                    {"ROWS", integer(c.warpgroup_rows)},
                    {"BN", integer(c.columns)},
                    {"BK", integer(tile_gemm_depth(p))},
                    {"STAGES", integer(c.stages)},
                    {"GROUP", integer(c.group)},
                    {"CLUSTER", integer(int64_t{c.cluster_m} * c.cluster_n)},
                    {"BESIDE", integer(c.cluster_n > 1 ? 1 : 0)},
                    {"A_ORDER", order(p.a)},
                    {"B_ORDER", order(p.b)},
                    {"C_ORDER", integer(1)},
                    {"M_MULTIPLE", integer(1)},
                    {"N_MULTIPLE", integer(std::gcd(p.n, int64_t{8}))},
                    {"K_MULTIPLE", integer(1)},
                    {"C_MULTIPLE", integer(d.alignment())},
                    {"ROUND", integer(p.a.dtype == DType::float32 ? 1 : 0)},
                    {"TURNS", integer(c.turns())},
                    {"PART", integer(part_of(c, p))},
                    {"DIRECT", integer(c.direct ? 1 : 0)},
                    {"epilogue", language::Constant(std::string("epilogue"))}},
      .means = meaning_of(p)};
  TESSERA_TRY(kernel, language::elaborate(source, "gated", options));
  for (const Diagnostic& finding : core::verify(kernel, arch)) return error(finding);
  return kernel;
}

Candidate sketch(const GemmProblem& p, const TileGemmConfig& c, double ms) {
  Candidate out;
  out.realizer = std::string(name);
  out.config = as_product(c).to_json(p);
  out.config["products"] = "paired";
  out.predicted_ms = ms;
  return out;
}

Status write(Candidate& out, const GemmProblem& p, const TileGemmConfig& c,
             const arch::Arch& arch) {
  TESSERA_TRY(made, kernel_of(p, c, arch));
  const auto kernel = std::make_shared<const core::Kernel>(std::move(made));
  lower::Options options;
  options.places_at_launch = true;
  options.describe_name = std::string(name);
  TESSERA_TRY(lowered, lower::lower(*kernel, options));
  out.source = toolchain::Source{.name = std::string(name),
                                 .text = lowered.text,
                                 .arch = std::string(arch.name),
                                 .prove = proof_of(kernel)};
  std::map<std::string, int64_t> values = tile_gemm_values(p);
  const Matrix& up = p.leaves.front().matrix;
  values["D_tensor"] = up.tensor;
  values["D_offset"] = up.offset;
  values["D_STRIDE"] = up.ld;
  Launch launch;
  for (const std::string& integer : lowered.ints) launch.ints.push_back(values.at(integer));
  out.launches.push_back(std::move(launch));
  return {};
}

Status check_operands(const GemmProblem& p, const arch::Arch& arch) {
  TESSERA_CHECK(check_sm90(p, arch));
  const int bytes = size_of(p.a.dtype);
  if (bytes != 2 && !(bytes == 4 && p.precision == Precision::tf32))
    return error(fail(unsupported_gemm, "operands are {} at {} accuracy", name_of(p.a.dtype),
                      name_of(p.precision))
                     .expect("elements of 16 bits, or float32 as tf32"));
  for (const Matrix* m : {&p.a, &p.b})
    if (bytes != 2 && !m->columns_contiguous)
      return error(fail(unsupported_gemm, "an operand of {} bytes is not contiguous along K", bytes)
                       .expect("rows along K: wgmma transposes elements of 16 bits alone"));
  for (const Matrix& d : p.outputs)
    if (!d.columns_contiguous)
      return error(fail(unsupported_gemm, "column-major results of two products"));
  if (std::max({p.m, p.n, p.k}) >= most_extent)
    return error(fail(unsupported_gemm, "{} x {} x {}", p.m, p.n, p.k)
                     .expect("extents below {}", most_extent));
  return {};
}

Result<Space> realize(const rules::Pattern& pattern, const graph::Graph&, const arch::Arch& arch) {
  const auto* body = dynamic_cast<const rules::GatedMlpBody*>(pattern.body.get());
  if (body == nullptr) return error(fail(unsupported_gemm, "not a gated_mlp pattern"));
  TESSERA_TRY(p, paired_problem(*body, pattern.precision));
  TESSERA_CHECK(check_operands(p, arch));
  std::map<std::string, int> pruned;
  std::vector<Candidate> sketches;
  std::map<std::string, TileGemmConfig> config_of;
  for (const auto& [config, ms] : configs_of(p, arch, pruned)) {
    sketches.push_back(sketch(p, config, ms));
    config_of.emplace(sketches.back().config.dump(), config);
  }
  diversify(sketches);
  // Only those that are offered are written: it takes some milliseconds each.
  constexpr std::size_t limit = 16;
  Space space;
  for (Candidate& c : sketches) {
    if (space.candidates.size() == limit) break;
    const Status written = write(c, p, config_of.at(c.config.dump()), arch);
    if (written)
      space.candidates.push_back(std::move(c));
    else
      ++pruned[written.error().message];
  }
  if (space.candidates.empty()) {
    Diagnostic d = fail(unsupported_gemm, "no tile fits {} x {} x {}", p.m, p.n, p.k);
    for (const auto& [reason, times] : pruned)
      d.notes.push_back(fmt::format("{}: {}", times, reason));
    return error(std::move(d));
  }
  space.pruned.assign(pruned.begin(), pruned.end());
  return space;
}

}  // namespace

extern const Realizer tile_gated{
    "tile_gated",
    "kernels/gated.py, both products of a gated MLP in the kernel language, proved before it is "
    "compiled",
    Kind::synthesized, "gated_mlp", realize};

}  // namespace tessera::realize
