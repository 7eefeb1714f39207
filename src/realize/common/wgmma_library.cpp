#include "realize/common/wgmma_library.h"

#include <algorithm>

#include "realize/common/programmatic_launch.h"
#include "realize/common/sm90_library.h"
#include "realize/common/split_model.h"

namespace tessera::realize {
namespace {

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// Of the 232 registers that a thread of two multiplying warpgroups has. Split products keep two
// sets of accumulators.
constexpr int most_accumulators = 160;
constexpr int most_split_accumulators = 96;

Sm90Config model_of(const WgmmaConfig& c, const GemmProblem& p) {
  Sm90Config m;
  m.tile_m = c.rows;
  m.tile_n = c.columns;
  m.tile_k = wgmma_depth(c);
  m.cluster_m = c.cluster_m;
  m.cluster_n = c.cluster_n;
  m.schedule = c.schedule;
  m.paired = p.paired();
  if (c.split) m.mainloop = Mainloop::split_inline;
  return m;
}

std::vector<WgmmaConfig> hierarchy(bool split) {
  std::vector<WgmmaConfig> all;
  for (const Schedule schedule : {Schedule::cooperative, Schedule::pingpong})
    for (const int rows : {64, 128, 256})
      for (const int columns : {32, 64, 96, 128, 160, 192, 224, 256})
        for (const auto& [cm, cn] : {std::pair{1, 1}, {2, 1}, {1, 2}}) {
          if (split && schedule == Schedule::pingpong) continue;
          all.push_back({.rows = rows,
                         .columns = columns,
                         .cluster_m = cm,
                         .cluster_n = cn,
                         .schedule = schedule,
                         .split = split});
        }
  return all;
}

std::optional<std::string> refuse(const WgmmaConfig& c, const GemmProblem& p) {
  if (auto reason = wgmma_refuses(c, p)) return reason;
  const Sm90Config model = model_of(c, p);
  if (model.accumulator_registers() > (c.split ? most_split_accumulators : most_accumulators))
    return "more accumulators than a thread has registers for";
  if (c.stages < (c.split ? 2 : 3)) return "shared memory: too few stages";
  const int64_t tiles_m = ceil_div(p.m, c.rows), tiles_n = ceil_div(p.n, model.output_n());
  if (c.cluster_m > tiles_m || c.cluster_n > tiles_n) return "cluster larger than the problem";
  if ((tiles_m % c.cluster_m != 0 && tiles_m < 8) || (tiles_n % c.cluster_n != 0 && tiles_n < 8))
    return "cluster leaves blocks idle";
  const int64_t covered = tiles_m * c.rows * tiles_n * model.output_n();
  const bool smallest = (c.rows == 64 || tiles_m > 1) && (model.output_n() <= 32 || tiles_n > 1);
  if (covered > 2 * p.m * p.n && !smallest) return "tile wastes half its work";
  return std::nullopt;
}

/// Along which direction tiles are dealt, in bands of how many clusters.
std::vector<Knobs> knobs_of(const WgmmaConfig& c, const GemmProblem& p, const arch::Arch& arch) {
  const int64_t clusters_m = ceil_div(p.m, int64_t{c.rows} * c.cluster_m);
  const int64_t clusters_n = ceil_div(p.n, int64_t{model_of(c, p).output_n()} * c.cluster_n);
  if (clusters_m * clusters_n * p.l * c.cluster_m * c.cluster_n <= arch.multiprocessors)
    return {{1, 1}, {2, 1}};
  std::vector<Knobs> knobs;
  for (const int band : {8, 4, 16, 2, 1}) {
    if (band == 1 || band <= clusters_n) knobs.push_back({1, band});
    if (band == 1 || band <= clusters_m) knobs.push_back({2, band});
  }
  return knobs;
}

Candidate candidate(std::string_view realizer, const GemmProblem& p, const WgmmaConfig& c,
                    double ms, const arch::Arch& arch) {
  Candidate out;
  out.realizer = std::string(realizer);
  out.config = c.to_json();
  out.config["transposed"] = p.exchanged;
  if (p.paired()) out.config["products"] = "paired";
  if (!p.parts.empty()) out.config["columns"] = "parts";
  out.predicted_ms = ms;
  toolchain::Source source;
  source.name = out.realizer;
  source.text = wgmma_library(p, c, realizer, arch.name);
  source.arch = arch.name;
  add_programmatic_launch(arch, source);
  out.source = std::move(source);
  for (const Knobs& knobs : knobs_of(c, p, arch))
    out.launches.push_back({.knobs = knobs.to_json(), .ints = wgmma_values(p, knobs)});
  return out;
}

}  // namespace

Result<GemmProblem> restate_for_rows(GemmProblem p, const arch::Arch& arch) {
  TESSERA_CHECK(check_sm90(p, arch));
  if (p.inner > 0) return error(fail(unsupported_gemm, "batches of two strides"));
  if (size_of(p.a.dtype) == 1) return error(fail(unsupported_gemm, "8-bit operands"));
  const auto row_major = [](const Matrix& d) { return d.columns_contiguous; };
  if (std::all_of(p.outputs.begin(), p.outputs.end(), row_major)) return p;
  if (std::any_of(p.outputs.begin(), p.outputs.end(), row_major))
    return error(fail(unsupported_gemm, "results of different directions"));
  if (p.paired()) return error(fail(unsupported_gemm, "column-major results of two products"));
  return exchange(p);
}

Result<Space> wgmma_space(std::string_view realizer, const GemmProblem& p, const arch::Arch& arch,
                          std::size_t limit) {
  const bool split = p.precision == Precision::fp32;
  std::map<std::string, int> pruned;
  Space space;
  for (WgmmaConfig c : hierarchy(split)) {
    c.stages = wgmma_stages(c, p, arch.shared_memory_per_block);
    if (const auto reason = refuse(c, p)) {
      ++pruned[*reason];
      continue;
    }
    const Sm90Config model = model_of(c, p);
    const double ms = split ? predict_split_ms(model, p, arch) : predict_ms(model, p, arch);
    space.candidates.push_back(candidate(realizer, p, c, ms, arch));
  }
  if (space.candidates.empty())
    return error(fail(unsupported_gemm, "no tile fits {} x {} x {}", p.m, p.n, p.k));
  diversify(space.candidates);
  if (space.candidates.size() > limit) space.candidates.resize(limit);
  space.pruned.assign(pruned.begin(), pruned.end());
  return space;
}

}  // namespace tessera::realize
