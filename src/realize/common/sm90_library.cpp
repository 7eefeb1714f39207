#include "realize/common/sm90_library.h"

#include <algorithm>
#include <cmath>

#include "realize/common/programmatic_launch.h"

namespace tessera::realize {
namespace {

toolchain::Source source_of(std::string_view realizer, const LibraryText& text, const Sm90Config& c,
                            const arch::Arch& arch) {
  toolchain::Source source;
  source.name = std::string(realizer);
  source.text = library(text);
  source.arch = arch.name;
  source.flags = cutlass_flags({c.tile_n});
  source.cutlass = true;
  // Stream-K clears its workspace before every launch, so there is nothing to overlap, and CUTLASS
  // 4.2 does not compile it with grid dependencies.
  if (c.scheduler != Scheduler::stream_k) add_programmatic_launch(arch, source);
  return source;
}

std::string includes_of(const GemmProblem& p, const Sm90Config& c) {
  std::string text =
      "#include \"tessera_cutlass/functors.hpp\"\n#include \"tessera_cutlass/sm90_launch.hpp\"";
  if (c.interleaved) text += "\n#include \"tessera_cutlass/restrided.h\"";
  if (c.pointers) text += "\n#include \"tessera_cutlass/sm90_array.hpp\"";
  if (c.parted) text += "\n#include \"tessera_cutlass/turned.h\"";
  if (c.paired) text += "\n#include \"tessera_cutlass/gated.h\"";
  if (wide_rows(p, c)) text += "\n#include \"tessera_cutlass/wide_rows.h\"";
  if (c.store_buffers > 0) text += "\n#include \"tessera_cutlass/restaged.h\"";
  if (c.mainloop != Mainloop::stock) text += "\n#include \"tessera_cutlass/split_tf32.h\"";
  return text;
}

/// The kernels that pack split operands and that fill arrays of pointers are templates.
bool kernels_have_names(const Sm90Config& c) {
  return c.mainloop == Mainloop::stock && !c.pointers;
}

Json decision(const GemmProblem& p, const Sm90Config& c, const arch::Arch& arch) {
  Json j = c.to_json();
  if (c.mainloop == Mainloop::stock && c.stages == 0) {
    j["stages"] = mainloop_stages(c, needs_of(p), arch.shared_memory_per_block);
  }
  j["transposed"] = p.exchanged;
  return j;
}

}  // namespace

Result<const rules::GemmBody*> gemm_body(const rules::Pattern& pattern) {
  const auto* body = dynamic_cast<const rules::GemmBody*>(pattern.body.get());
  if (body == nullptr) return error(fail(unsupported_gemm, "not a gemm pattern"));
  if (pattern.precision == Precision::fp32) {
    return error(fail(unsupported_gemm, "the tensor core's tf32 is not of fp32 accuracy")
                     .help("cutlass_gemm_fp32 splits each operand in two tf32 parts"));
  }
  return body;
}

Result<GemmProblem> restate_for_wgmma(GemmProblem p) {
  const int bytes = size_of(p.a.dtype);
  if (bytes == 1 && !(p.a.columns_contiguous && p.b.columns_contiguous)) {
    return error(fail(unsupported_gemm, "fp8 needs both operands contiguous in k"));
  }
  // The collective builder would exchange A and B itself, and then returns wrong values.
  if (bytes == 4 && p.a.columns_contiguous && !p.b.columns_contiguous) {
    if (!p.paired()) return exchange(p);
    return error(fail(unsupported_gemm, "tf32 of two products in one needs weights along k"));
  }
  return p;
}

Status check_sm90(const GemmProblem& p, const arch::Arch& arch) {
  if (!arch.has("wgmma") || !arch.has("tma")) {
    return error(fail(unsupported_gemm, "{} has no wgmma and TMA", arch.name));
  }
  std::vector<const Matrix*> matrices = {&p.a, &p.b};
  for (const Matrix& d : p.outputs) matrices.push_back(&d);
  if (p.paired()) matrices.push_back(&p.leaves.front().matrix);
  for (const Matrix* m : matrices) {
    if (m->aligned()) continue;
    return error(fail(unsupported_gemm, "a matrix is not aligned for TMA")
                     .expect("strides and offset that are multiples of 16 bytes")
                     .but_found("stride {}, batch stride {}, offset {} of {}", m->ld, m->batch,
                                m->offset, name_of(m->dtype)));
  }
  return {};
}

Candidate product_candidate(std::string_view realizer, const GemmProblem& p, const Sm90Config& c,
                            double ms, const arch::Arch& arch) {
  Candidate out;
  out.realizer = std::string(realizer);
  out.config = decision(p, c, arch);
  out.predicted_ms = ms;
  LibraryText text;
  text.name = out.realizer;
  text.arch = arch.name;
  text.includes = includes_of(p, c);
  text.body = sm90_product(p, c, "product", 1);
  text.products = {"product"};
  text.apart = kernels_have_names(c);
  text.tail = "return 0;";
  text.ints = {"scratch"};
  for (std::string& name : product_ints(p, "")) text.ints.push_back(std::move(name));
  out.source = source_of(realizer, text, c, arch);
  for (const Knobs& knobs : sm90_knobs(c, p, arch)) {
    Launch launch;
    launch.knobs = knobs.to_json();
    launch.ints = {0};
    for (const int64_t v : product_values(p, knobs)) launch.ints.push_back(v);
    out.launches.push_back(std::move(launch));
  }
  return out;
}

Result<Space> product_space(std::string_view realizer, const GemmProblem& p, const arch::Arch& arch,
                            std::size_t limit) {
  const ConfigSpace configs = sm90_configs(p, arch);
  Space space;
  space.pruned.assign(configs.pruned.begin(), configs.pruned.end());
  for (const auto& [c, ms] : configs.configs) {
    if (space.candidates.size() == limit) break;
    space.candidates.push_back(product_candidate(realizer, p, c, ms, arch));
  }
  if (space.candidates.empty()) {
    return error(fail(unsupported_gemm, "no tile fits {} x {} x {}", p.m, p.n, p.k));
  }
  return space;
}

std::optional<Candidate> sliced_candidate(std::string_view realizer, const GemmProblem& p,
                                          const Sm90Config& c, const arch::Arch& arch) {
  if (p.outputs.size() != 1 || (c.interleaved && c.mainloop != Mainloop::stock))
    return std::nullopt;  // the reduction writes one result
  const std::vector<int64_t> counts = slice_counts(p, c, arch);
  if (counts.empty()) return std::nullopt;
  const GemmProblem slice = sliced(p, counts.front());
  Candidate out;
  out.realizer = std::string(realizer);
  out.config = decision(slice, c, arch);
  out.config["split"] = "batched";
  // A long K streams: what a second tile reads again comes late enough that L2 has half of it only
  // (256 x 256 x 524288 in tf32 on an H200: 128 x 256 in clusters of two reads all once, 0.268 ms;
  // 64 x 256 and 128 x 128 read a half more, 0.278 to 0.295 ms; in bf16 they are less far apart).
  const double once = static_cast<double>(p.m + p.n) * static_cast<double>(p.k) *
                      static_cast<double>(size_of(p.a.dtype));
  const double again = std::max(0.0, l2_read_bytes(c, slice) - once);
  out.predicted_ms = predict_ms(c, slice, arch) +
                     (static_cast<double>(sliced_scratch_bytes(p, counts.front())) + 0.25 * again) /
                         (arch.achievable_bandwidth_gbs * 1e6) +
                     0.003;
  LibraryText text;
  text.name = out.realizer;
  text.arch = arch.name;
  text.includes = includes_of(p, c);
  text.ints = {"scratch"};
  for (std::string& name : product_ints(slice, "slice_")) text.ints.push_back(std::move(name));
  const int first = static_cast<int>(text.ints.size());
  for (std::string& name : reduction_ints(p)) text.ints.push_back(std::move(name));
  text.body = sm90_product(slice, c, "product", 1) +
              reduction_text(p, first, {"tessera_cutlass", cutlass_type});
  text.products = {"product"};
  text.apart = kernels_have_names(c);
  text.tail = "return reduction::reduce(launch, workspace, stream);";
  out.source = source_of(realizer, text, c, arch);
  for (const int64_t slices : counts) {
    Launch launch;
    launch.knobs = {{"splits", slices}};
    launch.ints = {sliced_scratch_bytes(p, slices)};
    for (const int64_t v : product_values(sliced(p, slices), Knobs{})) launch.ints.push_back(v);
    for (const int64_t v : reduction_values(p, slices)) launch.ints.push_back(v);
    out.launches.push_back(std::move(launch));
  }
  return out;
}

void diversify(std::vector<Candidate>& candidates) {
  std::stable_sort(
      candidates.begin(), candidates.end(),
      [](const Candidate& x, const Candidate& y) { return x.predicted_ms < y.predicted_ms; });
  std::map<std::string, int> seen;
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Json& c = candidates[i].config;
    const std::string key = c["tile"].dump() + c["schedule"].dump() + c.value("mainloop", "") +
                            c.value("split", "") + c.value("slices", "");
    order.emplace_back(candidates[i].predicted_ms * std::pow(1.12, std::min(seen[key]++, 20)), i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& x, const auto& y) { return x.first < y.first; });
  std::vector<Candidate> sorted;
  for (const auto& [score, i] : order) sorted.push_back(std::move(candidates[i]));
  candidates = std::move(sorted);
}

}  // namespace tessera::realize
