#include "registry/winners.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tessera::registry {
namespace {

bool flagged(const Json& evidence) {
  return evidence.is_object() && evidence.contains("unreliable") &&
         evidence.at("unreliable") == true;
}

/// The fields of Entry::evidence that are no winner's own.
constexpr std::array of_the_entry{"eager_ms", "refined"};

double milliseconds(const Json& winner) {
  const Json& evidence = winner.at("evidence");
  return evidence.contains("ms") && evidence.at("ms").is_number() ? evidence.at("ms").get<double>()
                                                                  : INFINITY;
}

}  // namespace

const Json& winners_of(const Entry& e) {
  static const Json none = Json::array();
  const bool has = e.candidate.is_object() && e.candidate.contains("winners") &&
                   e.candidate.at("winners").is_array();
  return has ? e.candidate.at("winners") : none;
}

void lead_with_first(Entry& e) {
  const Json winners = winners_of(e);
  Json kept = Json::object();
  for (const char* name : of_the_entry) {
    if (e.evidence.is_object() && e.evidence.contains(name)) kept[name] = e.evidence.at(name);
  }
  if (winners.empty()) {
    e.status = "failed";
    e.realizer = e.kind = e.binary_hash = "";
    e.config = e.launch = e.candidate = e.evidence = Json::object();
    return;
  }
  const Json& first = winners.front();
  const Json& candidate = first.at("candidate");
  e.status = "accepted";
  e.realizer = candidate.value("realizer", "");
  e.kind = candidate.value("kind", "");
  e.config = candidate.value("config", Json::object());
  e.launch = first.value("launch", Json::object());
  e.binary_hash = first.value("binary", "");
  e.evidence = first.at("evidence");
  e.evidence.update(kept);
  double alone = INFINITY;
  for (const Json& w : winners) alone = std::min(alone, milliseconds(w));
  if (std::isfinite(alone)) e.evidence["alone_ms"] = alone;
}

Json wrong_trial(const Wrong& wrong) {
  return {{"label", wrong.label},       {"outcome", "wrong_result"}, {"reason", wrong.reason},
          {"realizer", wrong.realizer}, {"config", wrong.config},    {"in_module", true}};
}

bool is_wrong_trial(const Json& trial) {
  return trial.is_object() && trial.contains("in_module") && trial.at("in_module") == true &&
         trial.contains("realizer") && trial.contains("config");
}

void drop_wrong(Entry& e) {
  if (winners_of(e).empty()) return;
  Json kept = Json::array();
  for (const Json& w : winners_of(e)) {
    const Json& candidate = w.at("candidate");
    const bool wrong = std::any_of(e.negative.begin(), e.negative.end(), [&](const Json& t) {
      return is_wrong_trial(t) && t.at("realizer") == candidate.value("realizer", "") &&
             t.at("config") == candidate.value("config", Json::object());
    });
    if (!wrong) kept.push_back(w);
  }
  if (kept.size() == winners_of(e).size()) return;
  e.candidate["winners"] = std::move(kept);
  lead_with_first(e);
}

bool unreliable(const Entry& e) {
  if (flagged(e.evidence)) return true;
  const Json& winners = winners_of(e);
  return std::any_of(winners.begin(), winners.end(), [](const Json& w) {
    return w.is_object() && w.contains("evidence") && flagged(w.at("evidence"));
  });
}

}  // namespace tessera::registry
