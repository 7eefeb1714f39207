#include "evaluate/evaluate.h"

namespace tessera::evaluate {

Offers offers(const rules::Pattern& pattern, const graph::Graph& g, const arch::Arch& arch) {
  Offers out;
  std::vector<kernel::Candidate> found;
  for (const realize::Realizer* r : realize::all()) {
    if (!r->rule.empty() && r->rule != pattern.rule) continue;
    Result<realize::Space> space = r->realize(pattern, g, arch);
    if (!space) {
      out.unsupported.push_back({std::string(r->name), r->kind, space.error().message});
      continue;
    }
    for (auto& [reason, count] : space->pruned) {
      out.pruned.emplace_back(fmt::format("{}: {}", r->name, reason), count);
    }
    for (kernel::Candidate& c : space->candidates) found.push_back(std::move(c));
  }
  for (const int i : tune::search_order(items_of(found))) {
    out.candidates.push_back(std::move(found[static_cast<std::size_t>(i)]));
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> refused_of_ours(
    const std::vector<Unsupported>& unsupported) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const Unsupported& u : unsupported) {
    if (u.kind == kernel::Kind::synthesized) out.emplace_back(u.realizer, u.reason);
  }
  return out;
}

void leave_out_slow_builds(Offers& offers) {
  // What the model has to promise: it is no more exact than that.
  constexpr double worth_its_build = 0.97;
  const auto slow = [](const kernel::Candidate& c) {
    return c.build_seconds() >= tune::slow_build;
  };
  double best = 0;
  for (const kernel::Candidate& c : offers.candidates) {
    if (!c.source || slow(c) || c.predicted_ms <= 0) continue;
    best = best == 0 ? c.predicted_ms : std::min(best, c.predicted_ms);
  }
  if (best == 0) return;
  const auto left_out = std::erase_if(offers.candidates, [&](const kernel::Candidate& c) {
    return slow(c) && !c.proven && c.predicted_ms >= worth_its_build * best;
  });
  if (left_out == 0) return;
  offers.pruned.emplace_back(
      fmt::format("builds of half a minute that promise no {:.0f} % over what builds in seconds",
                  100 * (1 - worth_its_build)),
      static_cast<int>(left_out));
}

std::vector<tune::Item> items_of(const std::vector<kernel::Candidate>& candidates) {
  std::vector<tune::Item> out;
  for (const kernel::Candidate& c : candidates) {
    out.push_back({.predicted_ms = c.predicted_ms,
                   .launches = std::max(1, static_cast<int>(c.launches.size())),
                   .needs_build = c.source.has_value(),
                   .proven = c.proven,
                   .family = c.realizer});
  }
  return out;
}

}  // namespace tessera::evaluate
