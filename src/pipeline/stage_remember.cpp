// What a search taught, as the registry keeps it: entries, trials, and what was wrong in a module.
#include <algorithm>
#include <set>

#include "base/clock.h"
#include "pipeline/stages.h"
#include "registry/wrong.h"

namespace tessera::pipeline {
namespace {

using registry::Entry;

Json failures(const evaluate::Tuned& tuned) {
  Json out = Json::array();
  for (const tune::Trial& t : tuned.trials) {
    if (t.outcome == tune::Outcome::measured || t.outcome == tune::Outcome::skipped) continue;
    const auto& of = tuned.candidates.at(static_cast<std::size_t>(t.point.candidate));
    out.push_back({{"label", of.label},
                   {"kind", kernel::name_of(of.kind)},
                   {"outcome", tune::name_of(t.outcome)},
                   {"reason", t.reason}});
  }
  return out;
}

registry::Thoroughness searched(const Session& s, const Work& w) {
  const evaluate::Tuned& tuned = *w.tuned;
  std::set<int> tried;
  int measured = 0;
  for (const tune::Trial& t : tuned.trials) {
    if (t.outcome == tune::Outcome::skipped) continue;
    tried.insert(t.point.candidate);
    measured += t.outcome == tune::Outcome::measured ? 1 : 0;
  }
  return registry::thoroughness_of(
      {.asked = asked_of(s, w),
       .seconds = tuned.seconds,
       .because = s.stopped() ? "interrupted" : tuned.stopped_because,
       .untried = tried.size() + static_cast<std::size_t>(tuned.hopeless) < tuned.candidates.size(),
       .left_out_from = static_cast<double>(w.left_out_from),
       .candidates = static_cast<int>(tried.size()),
       .measurements = measured});
}

/// What was rechecked had its search before, here or where it was imported from.
registry::Thoroughness thoroughness(const Session& s, const Work& w) {
  registry::Thoroughness out = w.own ? w.own->search : registry::Thoroughness{};
  if (w.rechecked && w.imported) return together(out, w.imported->search, false);
  return w.rechecked ? out : together(out, searched(s, w), true);
}

}  // namespace

Status remember(Session& s, const Work& w) {
  if (!s.tools.registry) return {};
  const rules::Pattern& p = s.pattern(w.patterns.front());
  Entry e{.key = w.key, .rule = p.rule, .arch = std::string(s.found.arch->name)};
  e.winners = w.tuned->winners;
  e.eager_ms = w.tuned->eager_ms;
  e.refined = w.refined;
  e.toolchain = s.tools.toolchain;
  e.created = now_utc();
  e.run = s.run;
  e.negative = failures(*w.tuned);
  e.shape = p.body ? p.body->to_json() : Json::object();
  e.search = thoroughness(s, w);
  e.libraries = here_of(s, w).libraries;
  if (w.own) e.provenance = w.own->provenance;
  if (!w.by_hand.empty()) e.provenance = {.file = w.by_hand, .when = e.created};
  if (w.imported) {
    e.provenance = w.imported->provenance;
    e.provenance.imported = false;
  }
  if (e.accepted() && w.own && w.beside_own) e.replaces = w.own->created;
  TESSERA_CHECK(s.tools.registry->store(e));
  return s.tools.registry->settle_trials(w.key, e.toolchain);
}

namespace {

/// Failures that another day may not have.
bool passes(const Json& trial) {
  const Json detail = trial.value("detail", Json::object());
  const auto flagged = [](const Json& j) {
    return j.contains("unreliable") && j.at("unreliable") == true;
  };
  return detail.value("kind", "") == "out_of_memory" || flagged(detail) || flagged(trial);
}

/// The trial that keeps a search from a candidate: of its default launch.
Json refusal(const kernel::Candidate& c, const Json& mark) {
  return {{"label", c.label()},
          {"realizer", c.realizer},
          {"kind", kernel::name_of(c.kind)},
          {"config", c.config},
          {"knobs", c.launches.empty() ? Json::object() : c.launches.front().knobs},
          {"outcome", tune::name_of(tune::Outcome::wrong_result)},
          {"reason", mark.value("reason", "")}};
}

}  // namespace

Result<Json> known_trials(const Session& s, const Work& w,
                          const std::vector<kernel::Candidate>& candidates) {
  Json out = Json::array();
  if (!s.tools.registry) return out;
  const registry::Here here = here_of(s, w);
  TESSERA_TRY(kept, s.tools.registry->trials(w.key, here.toolchain));
  for (Json& trial : kept) {
    if (registry::is_wrong_trial(trial)) {
      if (const kernel::Candidate* c =
              offered(candidates, trial.at("realizer"), trial.at("config")))
        out.push_back(refusal(*c, trial));
      continue;
    }
    if (s.options.retune || passes(trial)) continue;
    const bool library = trial.value("kind", "") == kernel::name_of(kernel::Kind::library);
    if (library && trial.value("libraries", Json::object()) != here.libraries) continue;
    // The finals of another session are not beside those of this one.
    if (trial.contains("detail") && trial.at("detail").is_object()) {
      trial["detail"].erase("final");
      trial["detail"].erase("sustained_ms");
    }
    out.push_back(std::move(trial));
  }
  return out;
}

void note_trial(Session& s, Work& w, const Json& trial) {
  if (!s.tools.registry) return;
  const bool own_best =
      w.own && w.own->accepted() && trial.value("realizer", "") == w.own->realizer() &&
      kernel::same(trial.value("config", Json::object()), w.own->winners.front().candidate.config);
  w.beside_own = w.beside_own || own_best;
  const registry::Here here = here_of(s, w);
  Json kept = trial;
  if (trial.value("kind", "") == kernel::name_of(kernel::Kind::library))
    kept["libraries"] = here.libraries;
  (void)s.tools.registry->note_trial(w.key, here.toolchain, trial.value("label", ""), kept);
}

Status mark_wrong(Session& s, const Work& w, const std::string& label, const std::string& reason) {
  if (!s.tools.registry || !w.tuned) return {};
  for (const kernel::Winner& winner : w.tuned->winners) {
    if (winner.candidate.label() != label) continue;
    TESSERA_CHECK(s.tools.registry->mark_wrong(w.key, s.tools.toolchain,
                                               {.label = label,
                                                .realizer = winner.candidate.realizer,
                                                .config = winner.candidate.config,
                                                .reason = reason}));
  }
  return {};
}

}  // namespace tessera::pipeline
