// From kernels to a module: choose, order and measure end to end.
#include <algorithm>
#include <fmt/format.h>
#include <ranges>

#include "pipeline/gains.h"
#include "pipeline/recall.h"
#include "pipeline/stages.h"
#include "pipeline/why_not.h"

namespace tessera::pipeline {

namespace {

std::vector<composer::Placed> placed_of(const Session& s, const Chosen& chosen) {
  std::vector<composer::Placed> placed;
  for (const int o : chosen.choice.chosen) {
    const auto at = static_cast<std::size_t>(o);
    const Work& w = s.work[chosen.origins[at].work];
    placed.push_back({.pattern = chosen.options[at].pattern,
                      .winner = *placeable(s, w),
                      .eager_ms = w.tuned->eager_ms});
  }
  return placed;
}

/// Takes back what was chosen for values that another kernel spares the module.
void leave_out_unneeded(const Session& s, Chosen& chosen) {
  const std::vector<composer::Placed> placed = placed_of(s, chosen);
  const bool spares = std::any_of(placed.begin(), placed.end(), [&](const composer::Placed& p) {
    return !composer::spared_inputs(s.found.graph, p).empty();
  });
  if (!spares) return;
  const auto unneeded = composer::unneeded(s.found.graph, placed);
  if (!unneeded) return;  // whoever makes the plan says so
  composer::Choice& choice = chosen.choice;
  for (const int i : std::views::reverse(*unneeded)) {
    const auto at = choice.chosen.begin() + i;
    choice.left_out.emplace_back(*at, "a kernel that is placed spares the module what it makes");
    choice.chosen.erase(at);
  }
}

}  // namespace

Chosen choose_kernels(const Session& s) {
  Chosen out;
  for (std::size_t w = 0; w < s.work.size(); ++w) {
    const kernel::Winner* winner = placeable(s, s.work[w]);
    if (winner == nullptr) continue;
    const double ms = alone_ms(s, s.work[w]);
    for (const int i : s.work[w].patterns) {
      double eager_ms = s.work[w].tuned->eager_ms;
      // A benchmark asks what our kernel takes, also where it loses.
      if (s.options.place_all) eager_ms = std::max(eager_ms, ms * 1.001);
      out.options.push_back({.pattern = &s.pattern(i),
                             .ms = ms,
                             .eager_ms = eager_ms,
                             .ci95 = winner->evidence.ci95});
      out.origins.push_back({.work = w, .pattern = i});
    }
  }
  composer::raise_baselines(out.options);
  out.choice = composer::choose(s.found.graph, out.options);
  leave_out_unneeded(s, out);
  return out;
}

Result<Chosen> compose(const Session& s) {
  Chosen chosen = choose_kernels(s);
  TESSERA_TRY(plan, plan_of(s, chosen));
  s.say("compose", fmt::format("{} kernels placed, {} ops left to PyTorch",
                               chosen.choice.chosen.size(), plan.leftover.size()));
  return chosen;
}

Result<composer::Plan> plan_of(const Session& s, const Chosen& chosen,
                               const std::string& leftover_runner) {
  const std::vector<composer::Placed> placed = placed_of(s, chosen);
  std::map<graph::NodeId, std::string> why_left;
  for (const auto& [node, reason] : s.found.discovery.uncovered) why_left[node] = reason;
  for (int i = 0; i < static_cast<int>(s.found.discovery.patterns.size()); ++i) {
    const rules::Pattern& p = s.pattern(i);
    const std::string reason = fmt::format("{} {}: {}", p.id, p.rule, what_decided(s, chosen, i));
    for (const graph::NodeId n : p.computing) why_left.try_emplace(n, reason);
  }
  TESSERA_TRY(plan, composer::make_plan(s.found.graph, placed, why_left,
                                        {.device_name = s.tools.device_name,
                                         .arch = std::string(s.found.arch->name),
                                         .toolchain = s.tools.evaluation.tools.to_json()}));
  plan.leftover_runner = leftover_runner;
  return plan;
}

Result<Json> measure_module(const Session& s, bridge::Peer& tracer, const composer::Plan& plan) {
  s.say("measure", "the composed module beside its peers");
  // Who asked to stop wants the best so far soon: eager is enough to say what it is worth.
  const bool stopped = s.stopped() || s.options.total_seconds > 0;
  Json peers = stopped ? Json::array({"eager"}) : Json(s.options.peers);
  Json about = {{"plan", to_json(plan)},
                {"peers", std::move(peers)},
                {"leftover", plan.leftover_runner},
                {"ablation", s.options.ablation && !stopped}};
  Json request = about;
  request["seconds"] = stopped ? 1 : 10;
  about["plan"] = timed_part(about.at("plan"));
  TESSERA_TRY(times, ask_or_recall(s, tracer,
                                   {.method = "measure_module",
                                    .request = request,
                                    .about = about,
                                    .limit = std::chrono::seconds(3600)}));
  for (const std::string& peer : s.options.peers) {
    if (s.stopped() && peer != "eager") times["absent"][peer] = "the run was stopped";
  }
  return times;
}

}  // namespace tessera::pipeline
