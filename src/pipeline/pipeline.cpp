#include "pipeline/pipeline.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>

#include "arch/arch.h"
#include "base/files.h"
#include "base/text.h"
#include "pipeline/propose.h"
#include "pipeline/report.h"
#include "pipeline/stages.h"
#include "pipeline/time_left.h"

namespace tessera::pipeline {
namespace {

inline constexpr Code no_arch{"TS0024", "input.no_architecture"};
inline constexpr Code wrong_device{"TS0025", "input.wrong_device"};

// The architecture with the highest compute capability that the device can run.
Result<const arch::Arch*> arch_for(const graph::Graph& g, const std::string& name) {
  if (name != "auto") return arch::find(name);
  if (!g.device.starts_with("cuda")) return arch::find("host");
  const Json capability = g.meta.value("capability", Json::array({0, 0}));
  const int have = capability.at(0).get<int>() * 10 + capability.at(1).get<int>();
  const arch::Arch* best = nullptr;
  for (const arch::Arch* a : arch::all()) {
    if (a->compute_capability == 0 || a->compute_capability > have) continue;
    // Code with an `a` suffix runs on exactly its own generation.
    if (a->name.ends_with("a") && a->compute_capability != have) continue;
    if (best == nullptr || a->compute_capability > best->compute_capability) best = a;
  }
  if (best == nullptr) {
    return error(fail(no_arch,
                      "no architecture of tessera runs on a device of compute capability {}.{}",
                      have / 10, have % 10)
                     .expect("8.0 or newer, or a module on the CPU")
                     .help("move the module and its inputs to the CPU, or give --arch host"));
  }
  return best;
}

void dump(const Options& options, const std::string& name, const std::string& text) {
  if (!options.dump.empty()) write_file_atomically(options.dump / name, text);
}

void dump_discovery(const Options& options, const Discovered& d) {
  dump(options, "3-discovery.txt", rules::to_table(d.graph, d.discovery));
  dump(options, "3-discovery.json", rules::to_json(d.graph, d.discovery).dump(1));
}

// Runs a stage and records its seconds under `name`.
template <class F>
auto timed(Session& s, const char* name, F&& stage) {
  const auto begin = std::chrono::steady_clock::now();
  auto result = stage();
  s.timings[name] = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace

// A module runs where it lies: kernels for another kind of device could be neither verified nor
// measured there.
Status check_device(const graph::Graph& g, const arch::Arch& a) {
  const bool on_gpu = g.device.starts_with("cuda");
  if (on_gpu == (a.device == "cuda")) return {};
  if (on_gpu) {
    return error(fail(wrong_device, "kernels for `{}` cannot run where the module is", a.name)
                     .expect("a module on the CPU")
                     .but_found("a module on {}", g.device)
                     .help("give --device cpu, or leave --arch out"));
  }
  return error(
      fail(wrong_device, "kernels for `{}` cannot run where the module is", a.name)
          .expect("a module on an NVIDIA GPU that PyTorch sees")
          .but_found("a module on {}", g.device)
          .help("run it on a machine with such a GPU (`tessera doctor` says what this one "
                "has), or leave --arch out for kernels for the CPU")
          .help("`tessera discover --arch {}` shows without a GPU what would be found", a.name));
}

Options options_from(const Json& a) {
  Options o;
  // A switch arrives as a bool from programs and as text from the command line.
  // Programs may write the key with underscores.
  const auto on = [&](const std::string& key, bool preset) {
    const std::string other = replace_all(key, "-", "_");
    const std::string& name = a.contains(key) ? key : other;
    if (!a.contains(name)) return preset;
    return a.at(name).is_boolean() ? a.at(name).get<bool>() : a.at(name) == "true";
  };
  o.arch = a.value("arch", o.arch);
  o.checkpoints = a.value("checkpoints", o.checkpoints);
  o.effort = a.value("effort", o.effort);
  o.leftover = a.value("leftover", o.leftover);
  o.seconds = a.value("seconds", o.seconds);
  o.spent = a.value("spent", o.spent);
  o.total_seconds = a.value("total-seconds", a.value("total_seconds", o.total_seconds));
  o.parallel_builds = a.value("jobs", o.parallel_builds);
  o.peers = a.value("peers", o.peers);
  o.measure = on("measure", o.measure);
  o.ablation = on("ablation", o.ablation);
  if (a.contains("resizes") && a.at("resizes") != "auto") o.resizes = on("resizes", true);
  o.use_registry = on("use-registry", o.use_registry);
  o.place_all = on("place-all", o.place_all);
  o.retune = on("retune", o.retune);
  o.only_kind = a.value("only", o.only_kind);
  if (o.only_kind == "both") o.only_kind.clear();
  o.registry = a.value("registry", "");
  o.cache = a.value("cache", "");
  o.dump = a.value("dump", "");
  return o;
}

Result<Discovered> discover(const Json& traced, const Options& options) {
  Discovered d;
  TESSERA_TRY(g, graph::import_graph(traced));
  d.graph = std::move(g);
  d.traced_text = graph::to_text(d.graph);
  dump(options, "1-traced.txt", d.traced_text);
  TESSERA_TRY(found_arch, arch_for(d.graph, options.arch));
  d.arch = found_arch;
  d.rewrites = rewrite::canonicalize(d.graph, options.rewrites_off);
  dump(options, "2-canonical.txt", graph::to_text(d.graph));
  TESSERA_TRY(proposed, proposed_before(options));
  d.discovery = rules::discover(d.graph, *d.arch, proposed);
  dump_discovery(options, d);
  return d;
}

Result<std::vector<Diagnostic>> ask_registry(Discovered& found, const Options& options) {
  std::error_code ignored;
  if (!options.use_registry || !std::filesystem::exists(registry_file(options), ignored))
    return std::vector<Diagnostic>();
  if (!check_device(found.graph, *found.arch)) {
    found.discovery.notes.push_back(
        fmt::format("the registry was not asked: kernels for `{}` cannot run where the module is",
                    found.arch->name));
    return std::vector<Diagnostic>();
  }
  const Context nobody;
  Session s{.options = options, .context = nobody};
  s.found = std::move(found);
  const auto asked = [&]() -> Status {
    TESSERA_TRY(tools, open_tools(s));
    s.tools = std::move(tools);
    s.work = group_by_signature(s);
    return look_up(s);
  }();
  found = std::move(s.found);
  if (!asked) return error(asked.error());
  return std::move(s.diagnostics);
}

namespace {

/// From winners to the module that is handed over: choose, place, settle, verify and measure.
Result<Results> assemble(Session& s, bridge::Peer& tracer, const Rewritten& rewritten,
                         Compilers compilers, std::vector<Checkpoint> noted) {
  const Options& options = s.options;
  Results out;
  TESSERA_TRY(chosen, timed(s, "compose", [&] { return compose(s); }));
  if (options.measure && options.total_seconds == 0) {
    TESSERA_TRY(refined,
                timed(s, "refine", [&] { return refine_plan(s, tracer, std::move(chosen)); }));
    chosen = std::move(refined.chosen);
    out.refinements = std::move(refined.exchanged);
  }
  TESSERA_TRY(settled,
              timed(s, "settle", [&] { return settle_plan(s, tracer, chosen, compilers); }));
  if (!noted.empty()) {
    TESSERA_TRY(decided, timed(s, "checkpoints", [&] {
                  return settle_checkpoints(s, tracer, settled.chosen, std::move(noted));
                }));
    out.checkpoints = std::move(decided);
  }
  dump(options, "4-plan.json", to_json(settled.plan).dump(1));
  TESSERA_TRY(checked, timed(s, "verify_module", [&] {
                return check_module(s, tracer, std::move(settled), rewritten, compilers);
              }));
  out.settled = std::move(checked.settled);
  out.verification = std::move(checked.verification);
  if (options.measure) {
    auto times =
        timed(s, "measure_module", [&] { return measure_module(s, tracer, out.settled->plan); });
    if (!times && !says_time_is_up(times.error())) return error(times.error());
    if (times) {
      out.times = std::move(*times);
    } else {  // the module is decided on and right without its times
      s.diagnostics.push_back(times.error());
      s.diagnostics.back().level = Level::warning;
    }
  }
  // Benchmarks place kernels that lose; what they show is not the module that a user gets.
  if (options.resizes.value_or(options.seconds == 0) && options.effort != "quick" &&
      !options.place_all) {
    TESSERA_TRY(rows, timed(s, "resizes",
                            [&] { return check_resizes(s, tracer, *out.settled, rewritten); }));
    out.verification.resizes = std::move(rows);
  }
  return out;
}

}  // namespace

Result<Optimized> optimize(bridge::Peer& tracer, const Json& traced, const Options& given,
                           const Context& context) {
  const Options options = within_total(given);
  const Deadline deadline(tracer, options);
  Session s{.options = options, .context = context};
  s.say("discover", "reading the traced module");
  TESSERA_TRY(found, discover(traced, options));
  TESSERA_CHECK(check_device(found.graph, *found.arch));
  Rewritten rewritten{.found = std::move(found)};
  if (options.compose) {
    TESSERA_TRY(right, timed(s, "check_rewrites", [&] {
                  return check_rewrites(s, tracer, traced, std::move(rewritten.found));
                }));
    rewritten = std::move(right);
  }
  s.found = std::move(rewritten.found);
  s.say("discover", fmt::format("{} patterns in {} ops for {}", s.found.discovery.patterns.size(),
                                s.found.graph.order.size(), s.found.arch->name));

  TESSERA_TRY(tools, timed(s, "tools", [&] { return open_tools(s); }));
  s.tools = std::move(tools);
  s.work = group_by_signature(s);
  TESSERA_CHECK(timed(s, "lookup", [&] { return look_up(s); }));
  dump_discovery(options, s.found);
  TESSERA_CHECK(check_builders(s));
  TESSERA_CHECK(wake_evaluator(s));
  if (options.compose) {
    TESSERA_TRY(baseline, timed(s, "baseline", [&] { return prepare_baseline(s, tracer); }));
    s.baseline = std::move(baseline);
  }
  TESSERA_CHECK(look_up_within_memory(s));
  std::vector<Checkpoint> noted;
  s.checkpoints = options.checkpoints;
  s.on_checkpoint = [&](double seconds) -> Status {
    TESSERA_TRY(checkpoint, note_checkpoint(s, seconds));
    noted.push_back(std::move(checkpoint));
    return {};
  };
  TESSERA_TRY(left_seconds, timed(s, "evaluate", [&] {
                reuse(s);
                const auto begin = std::chrono::steady_clock::now();
                // A candidate holds its source, emitted; which of them are built, verified and
                // timed, and in what order, is up to the search.
                std::vector<Realized> realized = realize(s);
                return search(s, std::move(realized), begin);
              }));

  Results results;
  if (options.compose) {
    TESSERA_TRY(assembled,
                assemble(s, tracer, rewritten, {.left_seconds = left_seconds}, std::move(noted)));
    results = std::move(assembled);
  }
  Optimized out;
  if (results.settled) out.plan = to_json(results.settled->plan);
  out.report = to_json(make_report(s, results));
  out.diagnostics = s.diagnostics;
  dump(options, "5-report.json", out.report.dump(1));
  return out;
}

}  // namespace tessera::pipeline
