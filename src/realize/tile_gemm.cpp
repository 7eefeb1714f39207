// Products written in the kernel language: kernels/gemm.py, kernels/gemm_fp32.py at the accuracy of
// float32 or kernels/gemm_tf32.py, and in slices of k, with the pattern's epilogue as a function.
// What TMA cannot read is copied first, by kernels/copies.py. They are proved before they are
// compiled, and a compiler takes a second for one.
#include <algorithm>
#include <limits>

#include "realize/common/proof.h"
#include "realize/common/sm90_library.h"
#include "realize/common/tile_copies.h"
#include "realize/common/tile_gemm_kernel.h"
#include "realize/common/tile_slices.h"

#include "lower/lower.h"

namespace tessera::realize {
namespace {

constexpr std::string_view name = "tile_gemm";

/// A way to make the product, and what it is expected to take.
struct Way {
  TileGemmConfig config;
  double ms = 0;
  bool copies = false;  // operands are copied first
};

/// What it is called and what it is expected to take: enough to choose among them.
Candidate sketch(const GemmProblem& p, const Way& way, const std::vector<TileCopy>& copies) {
  Candidate out;
  out.realizer = std::string(name);
  out.config = way.config.to_json(p);
  if (way.copies) {
    for (const TileCopy& c : copies) out.config["copies"].push_back(c.operand);
    out.workspace_bytes = tile_copies_bytes(copies);
  }
  out.config["transposed"] = p.exchanged;
  if (!p.parts.empty()) out.config["columns"] = "parts";
  out.predicted_ms = way.ms;
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
Status write_plain(Candidate& out, const GemmProblem& p, const TileGemmConfig& c,
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

/// The same of a product whose operands are copied first.
Status write_copied(Candidate& out, const GemmProblem& p, const std::vector<TileCopy>& copies,
                    const TileGemmConfig& c, const arch::Arch& arch) {
  const GemmProblem copied = tile_copied(p, copies);
  TESSERA_TRY(made, tile_gemm_kernel(copied, c, arch));
  const auto product = std::make_shared<const core::Kernel>(std::move(made));
  lower::Options options;
  options.describe_name = std::string(name);
  options.fetch_bytes = fetch_bytes(p, arch);
  TESSERA_TRY(lowered, lower::lower(tile_copies_first(copies, *product), options));
  std::map<std::string, int64_t> values;  // by the kernel's name and the integer's
  const auto take = [&](const std::string& kernel, const std::map<std::string, int64_t>& own) {
    for (const auto& [integer, value] : own) values[kernel + "_" + integer] = value;
  };
  std::vector<Proof> proofs;
  for (const TileCopy& copy : copies) {
    take(copy.kernel->name, tile_copy_values(copy));
    proofs.push_back(copy.proof);
  }
  take(product->name, tile_gemm_values(copied));
  proofs.push_back(proof_of(product));
  Launch launch;
  for (const std::string& integer : lowered.ints) launch.ints.push_back(values.at(integer));
  out.launches.push_back(std::move(launch));
  out.source = toolchain::Source{.name = std::string(name),
                                 .text = lowered.text,
                                 .arch = std::string(arch.name),
                                 .prove = proof_of_all(std::move(proofs))};
  return {};
}

Status write(Candidate& out, const GemmProblem& p, const Way& way,
             const std::vector<TileCopy>& copies, const arch::Arch& arch) {
  return way.copies ? write_copied(out, p, copies, way.config, arch)
                    : write_plain(out, p, way.config, arch);
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
  if ((splits || through_registers) && (p.paired() || !p.parts.empty()))
    return error(fail(unsupported_gemm, "parts of the columns, with operands from registers")
                     .expect("one function for all columns"));
  for (const Matrix* m : {&p.a, &p.b}) {
    if (!m->aligned())
      return error(
          fail(unsupported_gemm, "an operand is not aligned for TMA")
              .expect("strides and offset that are multiples of 16 bytes, where two products "
                      "share an operand")
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
Result<GemmProblem> restate(const rules::GemmBody& body, const rules::Pattern& pattern) {
  TESSERA_TRY(p, parted_problem(body, pattern.precision));
  if (!p.outputs.front().columns_contiguous) p = exchange(p);
  const GemmProblem turned = exchange(p);
  if (p.a.columns_contiguous && tile_gemm_through_registers(turned)) p = turned;
  return p;
}

struct Ways {
  std::vector<Way> all;  // the best prediction first
  std::map<std::string, int> pruned;
};

/// In one piece, as the operands are or from copies.
Ways ways_of(const GemmProblem& p, const std::vector<TileCopy>& copies, const arch::Arch& arch) {
  Ways out;
  const auto offer = [&](const GemmProblem& of, double more, bool copied) {
    TileGemmSpace found = tile_gemm_configs(of, arch);
    for (const auto& [config, ms] : found.configs) out.all.push_back({config, ms + more, copied});
    out.pruned.merge(found.pruned);
  };
  if (copies.empty())
    offer(p, 0, false);
  else
    offer(tile_copied(p, copies), tile_copies_ms(copies, arch), true);
  std::stable_sort(out.all.begin(), out.all.end(),
                   [](const Way& x, const Way& y) { return x.ms < y.ms; });
  return out;
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
                                         const Ways& whole, std::vector<Candidate>& sketches,
                                         std::map<std::string, int>& pruned) {
  constexpr double margin = 1.25;  // what the model of times may be off
  double best = std::numeric_limits<double>::infinity();
  for (const Way& w : whole.all) best = std::min(best, w.ms);
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
  TESSERA_TRY(p, restate(*body, pattern));
  TESSERA_TRY(copies, tile_copies(p, arch));
  TESSERA_CHECK(check_operands(tile_copied(p, copies), arch));
  Ways found = ways_of(p, copies, arch);
  // Only those that are offered are written: it takes some milliseconds each.
  constexpr std::size_t limit = 16;
  std::vector<Candidate> sketches;
  std::map<std::string, Way> way_of;
  for (const Way& way : found.all) {
    sketches.push_back(sketch(p, way, copies));
    way_of.emplace(sketches.back().config.dump(), way);
  }
  const auto sliced = !copies.empty() ? std::map<std::string, TileSlices>()
                                      : slices(by_rows(p), arch, found, sketches, found.pruned);
  diversify(sketches);
  Space space;
  // Those whose sums verification refuses, unless eager sums so itself, come last, and few.
  const auto inexact = [&](const Candidate& c) {
    const auto way = way_of.find(c.config.dump());
    return way != way_of.end() && tile_gemm_inexact(way->second.config, p);
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
                               : write(c, p, way_of.at(c.config.dump()), copies, arch);
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
    "kernels/gemm.py, gemm_fp32.py and gemm_tf32.py, and in slices of "
    "k gemm_slices.py and gemm_slices_tf32.py, with copies.py before them, written in the kernel "
    "language and proved before they are compiled: operands of 16 and "
    "8 bits, tf32, float32; epilogues as functions",
    Kind::synthesized, "gemm", realize};

}  // namespace tessera::realize
