// The whole journey of a module, as one function that names the stages in order.
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "bridge/bridge.h"
#include "diag/result.h"
#include "graph/graph.h"
#include "rules/rules.h"

#include "rewrite/canonical.h"

namespace tessera::pipeline {

struct Options {
  std::string arch = "auto";       // or an arch::Arch name
  std::string effort = "default";  // quick, default, max
  /// Who runs the ops that no kernel covers: eager, inductor, or auto for the faster.
  std::string leftover = "auto";
  double seconds = 0;        // for all tuning together; 0: by effort
  double spent = 0;          // of these seconds, by earlier graphs of the same model
  double total_seconds = 0;  // for everything, from `begun` on; 0: no limit
  std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
  int parallel_builds = 0;  // 0: one a core
  std::vector<std::string> peers = {"eager", "inductor"};
  std::vector<double> checkpoints;  // seconds of the search at which the plan is kept as well
  bool compose = true;              // false: stop after tuning
  bool measure = true;              // false: no end-to-end times
  bool ablation = true;
  /// Optimized again and verified at other sizes; unsaid: where the seconds are not limited. Never
  /// at `quick`.
  std::optional<bool> resizes;
  bool use_registry = true;        // false: neither read nor written
  bool place_all = false;          // place the best kernel even where eager is faster: benchmarks
  bool retune = false;             // true: stored winners are challenged again
  bool confined = false;           // compilers and candidates run in a sandbox
  std::string only_kind;           // "synthesized" or "library": what may be placed; "" for both
  std::filesystem::path registry;  // empty: the user's own
  std::filesystem::path cache;     // empty: the user's own
  std::filesystem::path dump;      // a folder: each stage's result is written there
  std::set<std::string> rewrites_off;  // rewrite::families() that change nothing
};

/// Reads options by the names of the command table, which has checked them.
Options options_from(const Json& arguments);

struct Context {
  std::function<void(const Json& event)> progress = [](const Json&) {};
  const std::atomic<bool>* stop = nullptr;
};

/// A traced module in its canonical form, with what was found in it.
struct Discovered {
  graph::Graph graph;
  std::string traced_text;  // before rewriting
  std::vector<rewrite::Rewrite> rewrites;
  const arch::Arch* arch = nullptr;
  rules::Discovery discovery;
};

/// trace JSON → Graph → canonical form → patterns with their headroom.
Result<Discovered> discover(const Json& traced, const Options& options);

/// Asks every realizer for kernels of every pattern and keeps who has any: fills Pattern::makers.
/// Nothing is built.
void ask_realizers(Discovered& found);

/// Asks the registry about every pattern, as a search with these options does before it begins:
/// fills Pattern::reuse. Returns warnings. Kernels that cannot run where the module is have no
/// entry that counts: a note says so. A registry that is not there is not made.
Result<std::vector<Diagnostic>> ask_registry(Discovered& found, const Options& options);

struct Optimized {
  Json plan;    // tessera.plan/1; null when options.compose is false
  Json report;  // tessera.report/1
  std::vector<Diagnostic> diagnostics;
};

/// discover → lookup → realize → build → verify → tune → store → choose → plan → verify and measure
/// end to end. `tracer` holds the live module and answers verify_module and measure_module.
Result<Optimized> optimize(bridge::Peer& tracer, const Json& traced, const Options& options,
                           const Context& context);

}  // namespace tessera::pipeline
