// Products written in the kernel language: kernels/gemm.py, kernels/gemm_fp32.py at the accuracy of
// float32, kernels/gemm_tf32.py or kernels/gemm_unaligned.py, and in slices of k, with the
// pattern's epilogue as a function. They are proved before they are compiled, and a compiler takes
// a second for one.
#include <algorithm>
#include <limits>

#include "realize/common/proof.h"
#include "realize/common/sm90_library.h"
#include "realize/common/tile_gemm_kernel.h"
#include "realize/common/tile_slices.h"

#include "lower/lower.h"

namespace tessera::realize {
namespace {

constexpr std::string_view name = "tile_gemm";

/// What it is called and what it is expected to take: enough to choose among them.
Candidate sketch(const GemmProblem& p, const TileGemmConfig& c, double ms) {
  Candidate out;
  out.realizer = std::string(name);
  out.config = c.to_json(p);
  out.config["transposed"] = p.exchanged;
  if (!p.parts.empty()) out.config["columns"] = "parts";
  out.predicted_ms = ms;
  return out;
}

/// Bytes that L2 fetches at least of a line that TMA asks for. Neighbours are the next slot's, and
/// come in time where the operands stay in the cache. Of larger ones the tiles of several blocks go
/// through it at once, and what came early is gone when its turn comes (bench/notes.md).
int fetch_bytes(const GemmProblem& p, const arch::Arch& arch) {
  const auto bytes = [&](const Matrix& x, int64_t rows) {
    return (x.batch == 0 ? 1 : p.l) * rows * p.k * size_of(x.dtype);
  };
  return bytes(p.a, p.m) + bytes(p.b, p.n) > arch.l2_bytes ? 128 : 256;
}

/// Fills in the source and its launch.
Status write(Candidate& out, const GemmProblem& p, const TileGemmConfig& c,
             const arch::Arch& arch) {
  TESSERA_TRY(made, tile_gemm_kernel(p, c, arch));
  auto kernel = std::make_shared<const core::Kernel>(std::move(made));
  lower::Options options;
  options.places_at_launch = true;
  options.describe_name = std::string(name);
  options.fetch_bytes = fetch_bytes(p, arch);
  TESSERA_TRY(lowered, lower::lower(*kernel, options));
  out.source = toolchain::Source{.name = std::string(name),
                                 .text = lowered.text,
                                 .arch = std::string(arch.name),
                                 .prove = proof_of(kernel)};
  Launch launch;
  const std::map<std::string, int64_t> values = tile_gemm_values(p);
  for (const std::string& integer : lowered.ints) launch.ints.push_back(values.at(integer));
  out.launches.push_back(std::move(launch));
  return {};
}

Status check_operands(const GemmProblem& p, const arch::Arch& arch) {
  if (!arch.has("wgmma") || !arch.has("tma"))
    return error(fail(unsupported_gemm, "{} has no wgmma and TMA", arch.name));
  const int bytes = size_of(p.a.dtype);
  const bool splits = tile_gemm_splits(p);
  const bool tf32 = bytes == 4 && p.precision == Precision::tf32;
  if (bytes > 2 && !tf32 && !splits)
    return error(fail(unsupported_gemm, "operands are {} at {} accuracy", name_of(p.a.dtype),
                      name_of(p.precision))
                     .expect("elements of 16 or 8 bits, or float32 as tf32 or at fp32 accuracy"));
  const bool through_registers = tile_gemm_through_registers(p);
  const bool by_threads = tile_gemm_width(p) > 0;
  if ((splits || through_registers || by_threads) && (p.paired() || !p.parts.empty()))
    return error(fail(unsupported_gemm, "parts of the columns, with operands from registers")
                     .expect("one function for all columns"));
  for (const Matrix* m : {&p.a, &p.b}) {
    if (!m->aligned() && !by_threads)
      return error(
          fail(unsupported_gemm, "an operand is not aligned for TMA")
              .expect("strides and offset that are multiples of 16 bytes, or both operands "
                      "of 16 bits with rows along k from such an offset")
              .but_found("stride {}, batch stride {}, offset {} of {}", m->ld, m->batch, m->offset,
                         name_of(m->dtype)));
    if (bytes != 2 && !m->columns_contiguous && !splits && !(through_registers && m == &p.a))
      return error(fail(unsupported_gemm, "an operand of {} bytes is not contiguous along K", bytes)
                       .expect("rows along K: wgmma transposes elements of 16 bits alone"));
  }
  for (const Matrix& d : p.outputs)
    if (d.columns_contiguous != p.outputs.front().columns_contiguous)
      return error(fail(unsupported_gemm, "results of different directions"));
  // As the kernel files declare them.
  const int64_t most = int64_t{1} << (p.l > 1 ? 19 : 20);
  if (std::max({p.m, p.n, p.k}) >= most || p.l >= (1 << 16))
    return error(fail(unsupported_gemm, "{} x {} x {} in {} batches", p.m, p.n, p.k, p.l)
                     .expect("extents below {}", most));
  return {};
}

/// The problem as the kernel computes it: with a row-major result, but where that leaves tf32 a B
/// that does not lie along k.
Result<GemmProblem> restate(const rules::GemmBody& body, const rules::Pattern& pattern,
                            const arch::Arch& arch) {
  TESSERA_TRY(p, parted_problem(body, pattern.precision));
  if (!p.outputs.front().columns_contiguous) p = exchange(p);
  const GemmProblem turned = exchange(p);
  if (p.a.columns_contiguous && tile_gemm_through_registers(turned)) p = turned;
  TESSERA_CHECK(check_operands(p, arch));
  return p;
}

Diagnostic none_of(const GemmProblem& p, const std::map<std::string, int>& pruned) {
  Diagnostic d = fail(unsupported_gemm, "no tile fits {} x {} x {}", p.m, p.n, p.k);
  for (const auto& [reason, times] : pruned)
    d.notes.push_back(fmt::format("{}: {}", times, reason));
  return d;
}

/// As slices are stated: with a result by rows.
GemmProblem by_rows(const GemmProblem& p) {
  return p.outputs.front().columns_contiguous ? p : exchange(p);
}

/// Products whose k is cut into slices, where they may win over those in one piece.
std::map<std::string, TileSlices> slices(const GemmProblem& p, const arch::Arch& arch,
                                         const TileGemmSpace& whole,
                                         std::vector<Candidate>& sketches,
                                         std::map<std::string, int>& pruned) {
  constexpr double margin = 1.25;  // what the model of times may be off
  double best = std::numeric_limits<double>::infinity();
  for (const auto& [config, ms] : whole.configs) best = std::min(best, ms);
  TileSlicesSpace found = tile_slices_configs(p, arch);
  pruned.merge(found.pruned);
  std::map<std::string, TileSlices> out;
  for (const auto& [config, ms] : found.configs) {
    if (ms > margin * best) {
      ++pruned["slices are slower than the product in one piece"];
      continue;
    }
    sketches.push_back(tile_slices_sketch(p, config, ms, arch));
    out.emplace(sketches.back().config.dump(), config);
  }
  return out;
}

Result<Space> realize(const rules::Pattern& pattern, const graph::Graph&, const arch::Arch& arch) {
  const auto* body = dynamic_cast<const rules::GemmBody*>(pattern.body.get());
  if (body == nullptr) return error(fail(unsupported_gemm, "not a gemm pattern"));
  TESSERA_TRY(p, restate(*body, pattern, arch));
  TileGemmSpace found = tile_gemm_configs(p, arch);
  std::stable_sort(found.configs.begin(), found.configs.end(),
                   [](const auto& x, const auto& y) { return x.second < y.second; });
  // Only those that are offered are written: it takes some milliseconds each.
  constexpr std::size_t limit = 16;
  std::vector<Candidate> sketches;
  std::map<std::string, TileGemmConfig> config_of;
  for (const auto& [config, ms] : found.configs) {
    sketches.push_back(sketch(p, config, ms));
    config_of.emplace(sketches.back().config.dump(), config);
  }
  const auto sliced = tile_gemm_width(p) > 0
                          ? std::map<std::string, TileSlices>()
                          : slices(by_rows(p), arch, found, sketches, found.pruned);
  diversify(sketches);
  Space space;
  // Those whose sums verification refuses, unless eager sums so itself, come last, and few.
  const auto inexact = [&](const Candidate& c) {
    const auto config = config_of.find(c.config.dump());
    return config != config_of.end() && tile_gemm_inexact(config->second, p);
  };
  const auto last = std::stable_partition(sketches.begin(), sketches.end(),
                                          [&](const Candidate& c) { return !inexact(c); });
  if (last != sketches.begin() && last != sketches.end()) {
    constexpr std::ptrdiff_t exact = limit * 3 / 4;
    sketches.erase(sketches.begin() + std::min(last - sketches.begin(), exact), last);
  }
  for (Candidate& c : sketches) {
    if (space.candidates.size() == limit) break;
    const auto in_slices = sliced.find(c.config.dump());
    const Status written = in_slices != sliced.end()
                               ? write_tile_slices(c, by_rows(p), in_slices->second, arch)
                               : write(c, p, config_of.at(c.config.dump()), arch);
    if (written)
      space.candidates.push_back(std::move(c));
    else
      ++found.pruned[written.error().message];
  }
  if (space.candidates.empty()) return error(none_of(p, found.pruned));
  space.pruned.assign(found.pruned.begin(), found.pruned.end());
  return space;
}

}  // namespace

extern const Realizer tile_gemm{
    "tile_gemm",
    "kernels/gemm.py, gemm_fp32.py, gemm_tf32.py and gemm_unaligned.py, and in slices of "
    "k gemm_slices.py and gemm_slices_tf32.py, written in the kernel "
    "language and proved before they are compiled: operands of 16 and "
    "8 bits, tf32, float32; epilogues as functions",
    Kind::synthesized, "gemm", realize};

}  // namespace tessera::realize
