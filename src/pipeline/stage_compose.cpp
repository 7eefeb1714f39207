// From kernels to a module: choose, order and measure end to end.
#include <algorithm>
#include <fmt/format.h>

#include "pipeline/gains.h"
#include "pipeline/stages.h"

namespace tessera::pipeline {
namespace {

std::string why_not(const Session& s, const rules::Pattern& p) {
  for (const auto& [index, reason] : s.choice.left_out) {
    if (s.placed_options[static_cast<std::size_t>(index)].pattern == &p) return reason;
  }
  for (const Work& w : s.work) {
    for (const int i : w.patterns) {
      if (&s.pattern(i) != &p) continue;
      if (!w.skipped.empty()) return w.skipped;
      if (w.tuned && w.tuned->winners.empty()) return "no candidate passed its gates";
      if (placeable(s, w) == nullptr)
        return fmt::format("no {} kernel passed its gates", s.options.only_kind);
    }
  }
  return "not chosen";
}

}  // namespace

void choose_kernels(Session& s) {
  s.placed_options.clear();
  s.option_origin.clear();
  for (std::size_t w = 0; w < s.work.size(); ++w) {
    if (placeable(s, s.work[w]) == nullptr) continue;
    const double ms = alone_ms(s, s.work[w]);
    for (const int i : s.work[w].patterns) {
      double eager_ms = s.work[w].tuned->eager_ms;
      // A benchmark asks what our kernel takes, also where it loses.
      if (s.options.place_all) eager_ms = std::max(eager_ms, ms * 1.001);
      s.placed_options.push_back({.pattern = &s.pattern(i), .ms = ms, .eager_ms = eager_ms});
      s.option_origin.emplace_back(static_cast<int>(w), i);
    }
  }
  s.choice = composer::choose(s.found.graph, s.placed_options);
}

Status compose_plan(Session& s) {
  choose_kernels(s);
  TESSERA_TRY(plan, plan_of_choice(s));
  s.plan = std::move(plan);
  s.say("compose", fmt::format("{} kernels placed, {} ops left to PyTorch", s.choice.chosen.size(),
                               s.plan->leftover.size()));
  return {};
}

Result<composer::Plan> plan_of_choice(const Session& s) {
  std::vector<composer::Placed> placed;
  for (const int o : s.choice.chosen) {
    const Work& w =
        s.work[static_cast<std::size_t>(s.option_origin[static_cast<std::size_t>(o)].first)];
    placed.push_back({.pattern = s.placed_options[static_cast<std::size_t>(o)].pattern,
                      .winner = *placeable(s, w),
                      .eager_ms = w.tuned->eager_ms});
  }
  std::map<graph::NodeId, std::string> why_left;
  for (const auto& [node, reason] : s.found.discovery.uncovered) why_left[node] = reason;
  for (const rules::Pattern& p : s.found.discovery.patterns) {
    const std::string reason = fmt::format("{} {}: {}", p.id, p.rule, why_not(s, p));
    for (const graph::NodeId n : p.computing) why_left.try_emplace(n, reason);
  }
  TESSERA_TRY(plan, composer::make_plan(s.found.graph, placed, why_left,
                                        {.device_name = s.device_name,
                                         .arch = std::string(s.found.arch->name),
                                         .toolchain = s.evaluation.tools.to_json()}));
  plan.leftover_runner = s.leftover;
  return plan;
}

Status measure_module(Session& s, bridge::Peer& tracer) {
  s.say("measure", "the composed module beside its peers");
  // Who asked to stop wants the best so far soon: eager is enough to say what it is worth.
  const bool stopped = s.stopped();
  Json peers = stopped ? Json::array({"eager"}) : Json(s.options.peers);
  auto reply = tracer.call("measure_module",
                           {{"plan", to_json(*s.plan)},
                            {"peers", std::move(peers)},
                            {"leftover", s.leftover},
                            {"seconds", stopped ? 1 : 10},
                            {"ablation", s.options.ablation && !stopped}},
                           std::chrono::seconds(3600));
  if (!reply) return error(std::move(reply).error());
  s.module_times = std::move(*reply);
  for (const std::string& peer : s.options.peers) {
    if (stopped && peer != "eager") s.module_times["absent"][peer] = "the run was stopped";
  }
  return {};
}

}  // namespace tessera::pipeline
