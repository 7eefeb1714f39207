#include "pipeline/report.h"

#include "base/elsewhere.h"
#include "pipeline/why_not.h"

namespace tessera::pipeline {
namespace {

Json winners_json(const Work& w) {
  Json out = Json::array();
  if (!w.tuned) return out;
  for (const kernel::Winner& winner : w.tuned->winners) out.push_back(kernel::report_row(winner));
  return out;
}

/// Whether the ratio of two times of the module is a figure.
bool comparable(const Json& a, const Json& b, double elsewhere) {
  const auto spread = [](const Json& t) {
    return Spread{.ms = t.value("ms", 0.0), .ci95 = t.value("ci95", 0.0)};
  };
  return a.value("reliable", true) && b.value("reliable", true) &&
         !near_tie_under_load(spread(a), spread(b), elsewhere);
}

/// The tracer's answer, where every peer, and every part of the ablation, says whether its ratio
/// (to tessera's time, and of eager's to it) may be told.
Json module_json(Json module) {
  const double elsewhere = module.value("elsewhere", 0.0);
  if (!module.contains("times")) return module;
  const Json ours = module.at("times").value("tessera", Json::object());
  const Json eager = module.at("times").value("eager", Json::object());
  for (auto& [name, t] : module.at("times").items())
    if (name != "tessera") t["comparable"] = comparable(t, ours, elsewhere);
  if (module.contains("ablation"))
    for (Json& part : module.at("ablation"))
      part["comparable"] = comparable(eager, part, elsewhere);
  return module;
}

template <class Rows, class F>
Json array_of(const Rows& rows, F&& to_json) {
  Json out = Json::array();
  for (const auto& row : rows) out.push_back(to_json(row));
  return out;
}

Json pattern_json(const graph::Graph& g, const PatternReport& row) {
  const rules::Pattern& p = *row.pattern;
  Json j = rules::to_json(g, p);
  j["summary"] = p.summary;
  j["active"] = row.active;
  j["floor_ms"] = p.floor_ms;
  j["flops"] = p.flops;
  j["min_bytes"] = p.min_bytes;
  if (row.work == nullptr) return j;
  j["winners"] = winners_json(*row.work);
  if (const auto& tuned = row.work->tuned) {
    j["eager_ms"] = tuned->eager_ms;
    if (!tuned->winners.empty()) {
      const kernel::Evidence& e = tuned->winners.front().evidence;
      j["comparable"] = !e.unreliable && e.ci95 <= most_noise * e.ms;
    }
    j["stopped_because"] = tuned->stopped_because;
    j["trial_count"] = tuned->trials.size();
    Json unsupported = Json::array();
    for (const auto& u : tuned->unsupported) unsupported.push_back(evaluate::to_json(u));
    j["unsupported"] = std::move(unsupported);
    if (row.tells_search) j["tuning"] = tuned->to_json();
  }
  if (!row.active) j["inactive_because"] = row.inactive_because;
  if (const auto passed = passed_over(*row.work); !passed.empty()) {
    j["passed_over"] = array_of(
        passed, [](const PassedOver& p) { return Json{{"label", p.label}, {"reason", p.reason}}; });
  }
  return j;
}

Json peaks_json(const Discovered& found) {
  return {{"tflops", found.arch->peak_tflops(found.graph.precision)},
          {"bandwidth_gbs", found.arch->bandwidth_gbs},
          {"achievable_bandwidth_gbs", found.arch->achievable_bandwidth_gbs}};
}

Json rejection_json(const graph::Graph& g, const rules::Rejection& r) {
  Json nodes = Json::array();
  for (const graph::NodeId n : r.nodes) nodes.push_back(g.node(n).name);
  return {{"rule", r.rule}, {"nodes", std::move(nodes)}, {"reason", r.reason}};
}

/// {"baseline": ways, "ways": ways, "why", "measured", "chosen": index}; {} where nothing decides.
Json settled_json(const Report& r) {
  Json out = Json::object();
  if (!r.baseline.is_null()) out["baseline"] = r.baseline;
  if (r.settled != nullptr) out.update(to_json(r.settled->decided));
  return out;
}

}  // namespace

Json to_json(const Decided& decided) {
  if (decided.ways.is_null()) return Json::object();
  Json j = {{"ways", decided.ways}, {"why", decided.why}};
  if (!decided.measured.empty()) j["measured"] = decided.measured;
  if (decided.chosen) j["chosen"] = *decided.chosen;
  return j;
}

Json to_json(const Refinement& r) {
  Json j = {{"pattern", r.pattern}, {"from", r.from}, {"to", r.to}, {"ms", r.ms}, {"than", r.than}};
  if (r.sustained_ms > 0) {
    j["sustained_ms"] = r.sustained_ms;
    j["than_sustained"] = r.than_sustained;
  }
  return j;
}

Json to_json(const Checkpoint& checkpoint) {
  Json row = {{"seconds", checkpoint.seconds}, {"why", checkpoint.why}};
  if (checkpoint.plan) row["plan"] = to_json(*checkpoint.plan);
  return row;
}

Json to_json(const Verification& v) {
  if (v.reply.is_null()) return Json::object();
  Json j = v.reply;
  j["dropped"] = v.dropped;
  if (!v.rewrites_off.empty()) j["rewrites"]["off"] = v.rewrites_off;
  if (!v.resizes.is_null()) j["resizes"] = v.resizes;
  return j;
}

Json to_json(const Report& r) {
  const graph::Graph& g = r.found->graph;
  const composer::Plan* plan = r.settled != nullptr ? &r.settled->plan : nullptr;
  Json j = {{"schema", "tessera.report/1"},
            {"name", g.name},
            {"device", r.device},
            {"arch", r.found->arch->name},
            {"precision", name_of(g.precision)},
            {"effort", r.effort},
            {"leftover_runner", plan != nullptr ? plan->leftover_runner : "eager"},
            {"runner", plan != nullptr ? plan->runner : "kernels"},
            {"settled", settled_json(r)},
            {"kind", plan != nullptr ? plan->kind() : "none"},
            {"toolchain", r.toolchain},
            {"torch", g.meta.value("torch", "")},
            {"peaks", peaks_json(*r.found)}};
  j["rewrites"] = array_of(r.found->rewrites, [](const rewrite::Rewrite& w) {
    return Json{{"what", w.what}, {"result", w.result}, {"nodes", w.nodes}};
  });
  j["patterns"] = array_of(r.patterns, [&](const auto& p) { return pattern_json(g, p); });
  j["rejections"] =
      array_of(r.found->discovery.rejections, [&](const auto& x) { return rejection_json(g, x); });
  j["leftover"] = plan != nullptr ? composer::leftover_json(*plan) : Json::array();
  const auto own_form = [](const auto& x) { return to_json(x); };
  j["refinements"] = array_of(r.refinements, own_form);
  if (r.checkpoints) j["checkpoints"] = array_of(*r.checkpoints, own_form);
  j["verification"] = to_json(r.verification);
  j["module"] = module_json(r.module);
  j["stage_seconds"] = r.stage_seconds;
  j["stopped"] = r.stopped;
  return j;
}

}  // namespace tessera::pipeline
