#include "realize/common/wgmma_library.h"

#include <algorithm>
#include <limits>
#include <set>

#include "base/integers.h"
#include "realize/common/programmatic_launch.h"
#include "realize/common/sm90_library.h"
#include "realize/common/split_model.h"

namespace tessera::realize {
namespace {

// Of the 232 registers that a thread of two multiplying warpgroups has. Split products keep two
// sets of accumulators.
constexpr int most_accumulators = 160;
constexpr int most_split_accumulators = 80;  // A's parts of two steps are in registers too

Sm90Config model_of(const WgmmaConfig& c, const GemmProblem& p) {
  Sm90Config m;
  m.tile_m = c.rows;
  m.tile_n = c.columns;
  m.tile_k = wgmma_depth(c);
  m.cluster_m = c.cluster_m;
  m.cluster_n = c.cluster_n;
  m.schedule = c.schedule;
  m.paired = p.paired();
  if (c.split) m.mainloop = Mainloop::split_registers;
  return m;
}

std::vector<WgmmaConfig> hierarchy(Precision precision) {
  const bool split = precision == Precision::fp32;
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
                         .split = split,
                         .tf32 = precision == Precision::tf32});
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

toolchain::Source source_of(std::string_view realizer, const GemmProblem& p, const WgmmaConfig& c,
                            const arch::Arch& arch) {
  toolchain::Source source;
  source.name = std::string(realizer);
  source.text = wgmma_library(p, c, realizer, arch.name);
  source.arch = arch.name;
  add_programmatic_launch(arch, source);
  return source;
}

Candidate candidate(std::string_view realizer, const GemmProblem& p, const WgmmaConfig& c,
                    double ms, const arch::Arch& arch) {
  Candidate out;
  out.realizer = std::string(realizer);
  out.config = c.to_json();
  out.config["transposed"] = p.exchanged;
  if (p.paired()) out.config["products"] = "paired";
  if (!p.parts.empty()) out.config["columns"] = "parts";
  if (p.inner > 0) out.config["batches"] = "two strides";
  out.predicted_ms = ms;
  out.source = source_of(realizer, p, c, arch);
  for (const Knobs& knobs : knobs_of(c, p, arch))
    out.launches.push_back({.knobs = knobs.to_json(), .ints = wgmma_values(p, knobs)});
  return out;
}

/// Slice counts that fill whole waves of the machine, and powers of two.
std::vector<int64_t> slice_counts(const WgmmaConfig& c, const GemmProblem& p,
                                  const arch::Arch& arch) {
  constexpr int64_t waves = 4;
  // A slice of fewer stages is over before its loads have come.
  constexpr int64_t least_stages = 4;
  const int64_t tiles = ceil_div(p.m, c.rows) * ceil_div(p.n, c.columns);
  const int64_t steps = ceil_div(p.k, wgmma_depth(c));
  std::set<int64_t> counts;
  for (int64_t w = 1; w <= waves; ++w) counts.insert(arch.multiprocessors * w / tiles);
  for (int64_t s = 2; s * tiles <= waves * arch.multiprocessors; s *= 2) counts.insert(s);
  std::vector<int64_t> fit;
  for (int64_t s : counts) {
    if (s < 2 || steps / s < least_stages) continue;
    s = ceil_div(steps, ceil_div(steps, s));  // as few as have as many stages
    if (std::find(fit.begin(), fit.end(), s) == fit.end()) fit.push_back(s);
  }
  return fit;
}

double predict_sliced_ms(const Sm90Config& model, const GemmProblem& p, int64_t slices,
                         const arch::Arch& arch) {
  const GemmProblem slice = sliced(p, slices);
  const bool split = model.mainloop != Mainloop::stock;
  // A long K streams: what a second tile reads again comes late enough that L2 has half of it only
  // (sliced_candidate in sm90_library.cpp).
  const double once = static_cast<double>(p.m + p.n) * static_cast<double>(p.k) *
                      static_cast<double>(size_of(p.a.dtype));
  const double again = std::max(0.0, l2_read_bytes(model, slice) - once);
  constexpr double second_launch_ms = 0.003;
  return (split ? predict_split_ms(model, slice, arch) : predict_ms(model, slice, arch)) +
         (static_cast<double>(sliced_scratch_bytes(p, slices)) + 0.25 * again) /
             (arch.achievable_bandwidth_gbs * 1e6) +
         second_launch_ms;
}

std::optional<Candidate> sliced_candidate(std::string_view realizer, const GemmProblem& p,
                                          const WgmmaConfig& c, const arch::Arch& arch) {
  const Sm90Config model = model_of(c, p);
  std::vector<std::pair<double, int64_t>> counts;
  for (const int64_t s : slice_counts(c, p, arch))
    counts.emplace_back(predict_sliced_ms(model, p, s, arch), s);
  if (counts.empty()) return std::nullopt;
  std::sort(counts.begin(), counts.end());
  Candidate out;
  out.realizer = std::string(realizer);
  out.config = c.to_json();
  out.config["transposed"] = p.exchanged;
  out.predicted_ms = counts.front().first;
  out.source = source_of(realizer, p, c, arch);
  constexpr std::size_t most_counts = 4;
  for (std::size_t i = 0; i < std::min(counts.size(), most_counts); ++i)
    for (const bool interleaved : {false, true})
      out.launches.push_back(
          {.knobs = {{"splits", counts[i].second},
                     {"slices", interleaved ? "interleaved" : "runs"}},
           .ints = wgmma_sliced_values(p, c, static_cast<int>(counts[i].second), interleaved)});
  return out;
}

}  // namespace

Result<GemmProblem> restate_for_rows(GemmProblem p, const arch::Arch& arch) {
  TESSERA_CHECK(check_sm90(p, arch));
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
  for (WgmmaConfig c : hierarchy(p.precision)) {
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

Result<Space> wgmma_sliced_space(std::string_view realizer, const GemmProblem& p,
                                 const arch::Arch& arch, std::size_t limit) {
  const bool split = p.precision == Precision::fp32;
  std::map<std::string, int> pruned;
  Space space;
  double best_whole = std::numeric_limits<double>::infinity();
  for (WgmmaConfig c : hierarchy(p.precision)) {
    c.stages = wgmma_stages(c, p, arch.shared_memory_per_block);
    if (!refuse(c, p)) {
      const Sm90Config model = model_of(c, p);
      best_whole = std::min(best_whole,
                            split ? predict_split_ms(model, p, arch) : predict_ms(model, p, arch));
    }
    c.sliced = true;
    c.stages = wgmma_stages(c, p, arch.shared_memory_per_block);
    if (const auto reason = refuse(c, p)) {
      ++pruned[*reason];
      continue;
    }
    if (auto found = sliced_candidate(realizer, p, c, arch))
      space.candidates.push_back(std::move(*found));
    else
      ++pruned["K too short for slices"];
  }
  // The model counts sums as traffic of DRAM, though those of small results stay in L2.
  constexpr double margin = 1.25;
  const auto loses = [&](const Candidate& c) { return c.predicted_ms > margin * best_whole; };
  const auto kept = std::remove_if(space.candidates.begin(), space.candidates.end(), loses);
  pruned["slower than the product in one piece"] += static_cast<int>(space.candidates.end() - kept);
  space.candidates.erase(kept, space.candidates.end());
  if (space.candidates.empty())
    return error(fail(unsupported_gemm, "no slices of {} x {} x {} are worth a second kernel", p.m,
                      p.n, p.k));
  diversify(space.candidates);
  if (space.candidates.size() > limit) space.candidates.resize(limit);
  space.pruned.assign(pruned.begin(), pruned.end());
  return space;
}

}  // namespace tessera::realize
