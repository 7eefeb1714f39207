#include "evaluate/builds.h"

namespace tessera::evaluate {
namespace {

tune::Trial failure(int candidate, const Diagnostic& d) {
  tune::Trial t{
      .point = {candidate, 0}, .outcome = tune::Outcome::build_failed, .reason = d.message};
  if (d.code == "TS0304") t.outcome = tune::Outcome::timed_out;
  if (d.code == "TS0301" || d.code == "TS0302") t.outcome = tune::Outcome::unsupported;
  if (!d.notes.empty()) t.reason += ": " + d.notes.front();
  t.detail = d.data;
  return t;
}

}  // namespace

std::vector<tune::Trial> build_all(const std::vector<kernel::Candidate>& candidates,
                                   const std::vector<int>& which, BuildFarm& farm,
                                   const std::atomic<bool>& stop, BuildFarm::Deadline deadline,
                                   std::vector<std::optional<toolchain::Built>>& built) {
  std::vector<tune::Trial> out;
  std::vector<const toolchain::Source*> sources;
  std::vector<std::size_t> places;  // in `out`, of each source
  for (const int c : which) {
    out.push_back({.point = {c, 0}, .outcome = tune::Outcome::measured});
    const kernel::Candidate& candidate = candidates[static_cast<std::size_t>(c)];
    if (!candidate.source) continue;
    sources.push_back(&*candidate.source);
    places.push_back(out.size() - 1);
  }
  auto results = farm.get(sources, stop, deadline);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const int c = which[places[i]];
    if (!results[i]) {
      out[places[i]].outcome = tune::Outcome::skipped;
    } else if (!*results[i]) {
      out[places[i]] = failure(c, results[i]->error());
    } else {
      built[static_cast<std::size_t>(c)] = **results[i];
    }
  }
  return out;
}

}  // namespace tessera::evaluate
