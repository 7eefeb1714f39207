#include "pipeline/judge_reference.h"

#include <algorithm>
#include <random>
#include <set>

#include "arch/arch.h"
#include "graph/ops.h"

namespace tessera::pipeline {
namespace {

inline constexpr Code no_such_file{"TS0001", "input.no_such_file"};

/// Inputs that some op reads whole: not those of which it looks at a slice or at a few rows.
std::set<graph::ValueId> read_whole(const graph::Graph& g) {
  std::set<graph::ValueId> out;
  for (const graph::NodeId id : g.order) {
    const graph::Node& n = g.node(id);
    const graph::OpKind kind = graph::kind_of(n);
    if (kind == graph::OpKind::view || kind == graph::OpKind::gather) continue;
    for (const graph::ValueId v : graph::tensor_arguments(n)) out.insert(v);
  }
  return out;
}

/// No run can be faster: half of the larger of bytes and operations at the stated rates. Of
/// operations those of products, convolutions and attention, which no rewriting spares.
double least_ms(const graph::Graph& g, const arch::Arch& arch) {
  double bytes = 0, flops = 0;
  const std::set<graph::ValueId> whole = read_whole(g);
  for (const graph::ValueId v : g.inputs)
    if (whole.contains(v)) bytes += static_cast<double>(g.value(v).type.bytes());
  for (const graph::ValueId v : g.outputs) bytes += static_cast<double>(g.value(v).type.bytes());
  for (const graph::NodeId id : g.order) {
    const graph::Node& n = g.node(id);
    const graph::OpKind kind = graph::kind_of(n);
    if (kind == graph::OpKind::matmul || kind == graph::OpKind::convolution ||
        kind == graph::OpKind::attention)
      flops += graph::flops_of(g, n);
  }
  const double rate = arch.bandwidth_of(bytes, arch.bandwidth_gbs);
  const double tflops = arch.peak_tflops != nullptr ? arch.peak_tflops(g.precision) : 0;
  return 0.5 * std::max(rate > 0 ? bytes / rate * 1e-6 : 0, tflops > 0 ? flops / tflops * 1e-9 : 0);
}

/// Which ops a graph is made of, for people.
std::string ops_of(const graph::Graph& g) {
  std::string out;
  int count = 0;
  for (const graph::NodeId id : g.order) {
    const graph::Node& n = g.node(id);
    if (graph::kind_of(n) == graph::OpKind::view) continue;
    if (++count > 8) continue;
    const std::string op = n.op.substr(n.op.find('.') + 1);
    out += (out.empty() ? "" : ", ") + op.substr(0, op.find('.'));
  }
  return count > 8 ? fmt::format("{} and {} more", out, count - 8) : out;
}

Status check_files(const Judging& given) {
  std::vector<std::string> files = given.files;
  if (!given.reference.empty()) files.push_back(given.reference);
  for (const std::string& f : files) {
    if (std::filesystem::is_regular_file(f)) continue;
    return error(
        fail(no_such_file, "there is no file `{}`", f)
            .expect("FILE.py with `ModelNew`, and `Model` there or in --reference FILE.py"));
  }
  return {};
}

}  // namespace

Room room_for(const Judging& given, const std::string& log, std::vector<std::string> readable) {
  for (const std::string& f : given.reads)
    readable.push_back(std::filesystem::absolute(f).lexically_normal().string());
  return {.confined = given.confined,
          .gpu = given.device == "cuda",
          .log = log,
          .readable = std::move(readable)};
}

std::filesystem::path copied(const std::string& file, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  const std::filesystem::path at = folder / std::filesystem::path(file).filename();
  write_file_atomically(at, read_file(file));
  return at;
}

Result<Reference> make_reference(const Judging& given, const Options& options) {
  TESSERA_CHECK(check_files(given));
  Reference out;
  TESSERA_TRY(judge,
              Occupant::start("tessera.judge_process", {.confined = false, .log = "judge.log"}));
  out.judge = std::move(judge);
  std::filesystem::create_directories(out.judge->own() / "inputs");
  const std::string file = given.reference.empty() ? given.files.front() : given.reference;
  const std::filesystem::path at = copied(file, out.judge->own() / "reference");
  TESSERA_TRY(maker,
              Occupant::start("tessera.reference_process",
                              room_for(given, "reference.log", {at.parent_path().string()})));
  std::random_device chance;
  for (int64_t& seed : out.seeds) seed = static_cast<int64_t>(chance());
  TESSERA_TRY(made,
              maker->call("reference",
                          {{"path", at.string()},
                           {"class", given.reference_cls.empty() ? "Model" : given.reference_cls},
                           {"precision", given.precision},
                           {"device", given.device},
                           {"seeds", out.seeds},
                           {"folder", maker->own().string()}},
                          judge_limit));
  out.made = std::move(made);
  TESSERA_TRY(found, discover(out.made.at("graph"), options));
  TESSERA_TRY(traced, graph::import_graph(out.made.at("graph")));
  out.least_ms = least_ms(traced, *found.arch);
  out.summary = ops_of(traced);
  out.arch = found.arch->name;
  out.precision = name_of(traced.precision);
  TESSERA_TRY(opened, out.judge->call("open",
                                      {{"reference", out.made},
                                       {"device", given.device},
                                       {"folder", out.judge->own().string()}},
                                      judge_limit));
  out.opened = std::move(opened);
  return out;
}

}  // namespace tessera::pipeline
