#include "evaluate/evaluate.h"

namespace tessera::evaluate {

Offers offers(const rules::Pattern& pattern, const graph::Graph& g, const arch::Arch& arch) {
  Offers out;
  std::vector<realize::Candidate> found;
  for (const realize::Realizer* r : realize::all()) {
    if (!r->rule.empty() && r->rule != pattern.rule) continue;
    Result<realize::Space> space = r->realize(pattern, g, arch);
    if (!space) {
      out.unsupported.emplace_back(std::string(r->name), space.error().message);
      continue;
    }
    for (auto& [reason, count] : space->pruned) {
      out.pruned.emplace_back(fmt::format("{}: {}", r->name, reason), count);
    }
    for (realize::Candidate& c : space->candidates) found.push_back(std::move(c));
  }
  for (const int i : tune::search_order(items_of(found))) {
    out.candidates.push_back(std::move(found[static_cast<std::size_t>(i)]));
  }
  return out;
}

std::vector<tune::Item> items_of(const std::vector<realize::Candidate>& candidates) {
  std::vector<tune::Item> out;
  for (const realize::Candidate& c : candidates) {
    out.push_back({.predicted_ms = c.predicted_ms,
                   .launches = std::max(1, static_cast<int>(c.launches.size())),
                   .needs_build = c.source.has_value(),
                   .proven = c.proven,
                   .family = c.realizer});
  }
  return out;
}

}  // namespace tessera::evaluate
