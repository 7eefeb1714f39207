#include "evaluate/evaluate.h"

namespace tessera::evaluate {

Json trial_to_json(const tune::Trial& trial, const std::vector<kernel::Candidate>& candidates) {
  const kernel::Candidate& c = candidates.at(static_cast<std::size_t>(trial.point.candidate));
  const auto launch = static_cast<std::size_t>(trial.point.launch);
  Json j = {{"label", c.label()},
            {"realizer", c.realizer},
            {"kind", kernel::name_of(c.kind)},
            {"config", c.config},
            {"knobs", launch < c.launches.size() ? c.launches[launch].knobs : Json::object()},
            {"outcome", tune::name_of(trial.outcome)}};
  if (trial.outcome == tune::Outcome::measured) {
    j["ms"] = trial.ms;
    j["ci95"] = trial.ci95;
  }
  if (!trial.reason.empty()) j["reason"] = trial.reason;
  if (!trial.detail.empty()) j["detail"] = trial.detail;
  return j;
}

std::vector<tune::Trial> trials_from_json(const Json& known,
                                          const std::vector<kernel::Candidate>& candidates) {
  std::vector<tune::Trial> out;
  if (!known.is_array()) return out;
  for (const Json& j : known) {
    const auto outcome = tune::outcome_of(j.value("outcome", ""));
    if (!outcome) continue;
    for (std::size_t c = 0; c < candidates.size(); ++c) {
      if (candidates[c].realizer != j.value("realizer", "") ||
          candidates[c].config != j.value("config", Json())) {
        continue;
      }
      const auto& launches = candidates[c].launches;
      for (std::size_t l = 0; l < std::max<std::size_t>(1, launches.size()); ++l) {
        const Json knobs = l < launches.size() ? launches[l].knobs : Json::object();
        if (knobs != j.value("knobs", Json::object())) continue;
        out.push_back({.point = {static_cast<int>(c), static_cast<int>(l)},
                       .outcome = *outcome,
                       .ms = j.value("ms", 0.0),
                       .ci95 = j.value("ci95", 0.0),
                       .reason = j.value("reason", ""),
                       .detail = j.value("detail", Json::object())});
        break;
      }
      break;
    }
  }
  return out;
}

Json to_json(const Unsupported& u) {
  return {{"realizer", u.realizer}, {"kind", kernel::name_of(u.kind)}, {"reason", u.reason}};
}

Json Tuned::to_json() const {
  Json j = {{"schema", "tessera.tuned/1"},
            {"eager_ms", eager_ms},
            {"seconds", seconds},
            {"stopped_because", stopped_because},
            {"cut", cut},
            {"rounds", rounds},
            {"hopeless", hopeless}};
  j["winners"] = Json::array();
  for (const kernel::Winner& w : winners) {
    Json entry = kernel::wire_form(w);
    entry["evidence"] = kernel::to_json(w.evidence);
    j["winners"].push_back(std::move(entry));
  }
  j["trials"] = Json::array();
  for (const tune::Trial& t : trials) {
    Json entry = {{"label", candidates.at(static_cast<std::size_t>(t.point.candidate)).label},
                  {"launch", t.point.launch},
                  {"outcome", tune::name_of(t.outcome)},
                  {"ms", t.ms},
                  {"ci95", t.ci95}};
    if (!t.reason.empty()) entry["reason"] = t.reason;
    if (!t.detail.empty()) entry["detail"] = t.detail;
    j["trials"].push_back(std::move(entry));
  }
  j["unsupported"] = Json::array();
  for (const Unsupported& u : unsupported) j["unsupported"].push_back(evaluate::to_json(u));
  j["pruned"] = Json::array();
  for (const auto& [reason, count] : pruned)
    j["pruned"].push_back({{"reason", reason}, {"count", count}});
  return j;
}

}  // namespace tessera::evaluate
