// The report: everything that was found, tried and measured, as data (docs/report.md, schema
// tessera.report/1).
#include <algorithm>
#include <fmt/format.h>

#include "pipeline/stages.h"
#include "pipeline/why_not.h"

namespace tessera::pipeline {
namespace {

Json winners_json(const Work& w) {
  Json out = Json::array();
  if (!w.tuned) return out;
  for (const kernel::Winner& winner : w.tuned->winners) out.push_back(kernel::report_row(winner));
  return out;
}

Json pattern_json(const Session& s, int index, const Chosen& placed) {
  const rules::Pattern& p = s.pattern(index);
  const Work* w = s.work_of(index);
  Json j = rules::to_json(s.found.graph, p);
  const std::vector<int>& chosen = placed.choice.chosen;
  const bool active = std::any_of(chosen.begin(), chosen.end(), [&](int option) {
    return placed.origins[static_cast<std::size_t>(option)].pattern == index;
  });
  j["summary"] = p.summary;
  j["active"] = active;
  j["floor_ms"] = p.floor_ms;
  j["flops"] = p.flops;
  j["min_bytes"] = p.min_bytes;
  if (w == nullptr) return j;
  j["winners"] = winners_json(*w);
  if (w->tuned) {
    j["eager_ms"] = w->tuned->eager_ms;
    j["stopped_because"] = w->tuned->stopped_because;
    j["trial_count"] = w->tuned->trials.size();
    Json unsupported = Json::array();
    for (const auto& u : w->tuned->unsupported) unsupported.push_back(evaluate::to_json(u));
    j["unsupported"] = std::move(unsupported);
    // The first occurrence carries the search; the others share it.
    if (index == w->patterns.front()) j["tuning"] = w->tuned->to_json();
  }
  if (!active) j["inactive_because"] = why_not(s, placed, index);
  return j;
}

/// {"baseline": ways, "ways": ways, "chosen": index, "why"}; {} where nothing decides.
Json settled_json(const Baseline& baseline, const Results& results) {
  Json out = Json::object();
  if (!baseline.ways.is_null()) out["baseline"] = baseline.ways;
  if (results.settled) out.update(results.settled->told);
  return out;
}

}  // namespace

Json make_report(const Session& s, const Results& results) {
  const Chosen placed = results.settled ? results.settled->chosen : Chosen{};
  const composer::Plan* plan = results.settled ? &results.settled->plan : nullptr;
  Json report = {{"schema", "tessera.report/1"},
                 {"name", s.found.graph.name},
                 {"device", s.tools.device_name},
                 {"arch", s.found.arch->name},
                 {"precision", name_of(s.found.graph.precision)},
                 {"effort", s.options.effort},
                 {"leftover_runner", plan != nullptr ? plan->leftover_runner : "eager"},
                 {"runner", plan != nullptr ? plan->runner : "kernels"},
                 {"settled", settled_json(s.baseline, results)},
                 {"kind", plan != nullptr ? plan->kind() : "none"},
                 {"toolchain", s.tools.evaluation.tools.to_json()},
                 {"torch", s.found.graph.meta.value("torch", "")},
                 {"peaks",
                  {{"tflops", s.found.arch->peak_tflops(s.found.graph.precision)},
                   {"bandwidth_gbs", s.found.arch->bandwidth_gbs},
                   {"achievable_bandwidth_gbs", s.found.arch->achievable_bandwidth_gbs}}}};
  Json rewrites = Json::array();
  for (const rewrite::Rewrite& r : s.found.rewrites) {
    rewrites.push_back({{"what", r.what}, {"result", r.result}, {"nodes", r.nodes}});
  }
  report["rewrites"] = std::move(rewrites);
  Json patterns = Json::array();
  for (int i = 0; i < static_cast<int>(s.found.discovery.patterns.size()); ++i) {
    patterns.push_back(pattern_json(s, i, placed));
  }
  report["patterns"] = std::move(patterns);
  Json rejections = Json::array();
  for (const rules::Rejection& r : s.found.discovery.rejections) {
    Json nodes = Json::array();
    for (const graph::NodeId n : r.nodes) nodes.push_back(s.found.graph.node(n).name);
    rejections.push_back({{"rule", r.rule}, {"nodes", nodes}, {"reason", r.reason}});
  }
  report["rejections"] = std::move(rejections);
  report["leftover"] = plan != nullptr ? composer::leftover_json(*plan) : Json::array();
  report["refinements"] = results.refinements;
  if (!s.options.checkpoints.empty()) {
    report["checkpoints"] = Json::array();
    for (const Checkpoint& c : results.checkpoints) report["checkpoints"].push_back(to_json(c));
  }
  report["verification"] = results.verification;
  report["module"] = results.times;
  report["stage_seconds"] = s.timings;
  report["stopped"] = s.stopped();
  return report;
}

}  // namespace tessera::pipeline
