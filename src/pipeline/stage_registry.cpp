// What the registry knows of a work: looked up, brought back to life, stored.
#include <algorithm>
#include <ctime>

#include "pipeline/stages.h"

namespace tessera::pipeline {
namespace {

std::string now_utc() {
  const std::time_t t = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm tm{};
  gmtime_r(&t, &tm);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
  return text;
}

Json failures(const evaluate::Tuned& tuned) {
  Json out = Json::array();
  for (const tune::Trial& t : tuned.trials) {
    if (t.outcome == tune::Outcome::measured || t.outcome == tune::Outcome::skipped) continue;
    out.push_back({{"label", tuned.labels.at(static_cast<std::size_t>(t.point.candidate))},
                   {"outcome", tune::name_of(t.outcome)},
                   {"reason", t.reason}});
  }
  return out;
}

}  // namespace

Status remember(Session& s, const Work& w) {
  if (!s.registry) return {};
  const rules::Pattern& p = s.pattern(w.patterns.front());
  registry::Entry e{.key = w.key, .rule = p.rule, .arch = std::string(s.found.arch->name)};
  e.toolchain = s.evaluation.tools.fingerprint();
  e.created = now_utc();
  e.negative = failures(*w.tuned);
  e.shape = p.body ? p.body->to_json() : Json::object();
  if (w.tuned->winners.empty()) {
    e.status = "failed";
    return s.registry->store(e);
  }
  const evaluate::Tuned::Winner& best = w.tuned->winners.front();
  e.status = "accepted";
  e.realizer = best.candidate.realizer;
  e.kind = realize::name_of(best.candidate.kind);
  e.config = best.candidate.config;
  e.binary_hash = best.built ? best.built->hash : "";
  e.evidence = best.evidence.to_json();
  e.evidence["eager_ms"] = w.tuned->eager_ms;
  e.evidence["refined"] = w.refined;
  double alone = best.evidence.ms;
  Json winners = Json::array();
  for (const evaluate::Tuned::Winner& winner : w.tuned->winners) {
    alone = std::min(alone, winner.evidence.ms);
    const realize::Launch launch =
        winner.candidate.launches.empty()
            ? realize::Launch{}
            : winner.candidate.launches.at(static_cast<std::size_t>(winner.launch));
    winners.push_back({{"candidate", candidate_record(winner.candidate)},
                       {"launch", {{"knobs", launch.knobs}, {"ints", launch.ints}}},
                       {"evidence", winner.evidence.to_json()}});
  }
  e.evidence["alone_ms"] = alone;
  e.launch = winners.front().at("launch");
  e.candidate = {{"winners", winners}, {"eager_ms", w.tuned->eager_ms}};
  TESSERA_CHECK(s.registry->store(e));
  return s.registry->forget_trials(w.key);
}

Status mark_wrong(Session& s, const Work& w, const std::string& label, const std::string& reason) {
  if (!s.registry || !w.tuned) return {};
  Work without = w;
  evaluate::Tuned& left = *without.tuned;
  const auto failed = [&](const std::string& what, tune::Outcome outcome, const std::string& why) {
    left.trials.push_back(
        {.point = {static_cast<int>(left.labels.size()), 0}, .outcome = outcome, .reason = why});
    left.labels.push_back(what);
  };
  if (left.trials.empty() && w.entry) {  // reused: what failed before stays known
    for (const Json& n : w.entry->negative) {
      const auto outcome = tune::outcome_of(n.value("outcome", ""));
      failed(n.value("label", ""), outcome.value_or(tune::Outcome::wrong_result),
             n.value("reason", ""));
    }
  }
  failed(label, tune::Outcome::wrong_result, reason);
  std::erase_if(left.winners, [&](const auto& x) { return x.candidate.label() == label; });
  // Of two entries the registry keeps the better one, and the wrong kernel was faster.
  TESSERA_CHECK(s.registry->prune("hash:" + w.key.hash()));
  return remember(s, without);
}

namespace {

evaluate::Evidence evidence_from(const Json& j) {
  evaluate::Evidence e;
  e.ms = j.value("ms", 0.0);
  e.ci95 = j.value("ci95", 0.0);
  e.sustained_ms = j.value("sustained_ms", 0.0);
  e.max_error = j.value("max_error", 0.0);
  e.rms_error = j.value("rms_error", 0.0);
  e.baseline_max_error = j.value("baseline_max_error", 0.0);
  e.baseline_rms_error = j.value("baseline_rms_error", 0.0);
  e.resources = j.value("resources", Json::object());
  return e;
}

// The stored winners, built from the cache (or again when the cache was pruned).
Result<evaluate::Tuned> revive(Session& s, const Work& w) {
  evaluate::Tuned tuned;
  tuned.stopped_because = "reused from the registry";
  tuned.eager_ms = w.entry->candidate.value("eager_ms", 0.0);
  for (const Json& stored : w.entry->candidate.at("winners")) {
    TESSERA_TRY(candidate, candidate_from_record(stored.at("candidate")));
    candidate.launches = {
        realize::Launch{.knobs = stored.at("launch").at("knobs"),
                        .ints = stored.at("launch").at("ints").get<std::vector<int64_t>>()}};
    TESSERA_TRY(winner, s.evaluator->revive(s.pattern(w.patterns.front()), candidate, 0, false));
    winner.evidence = evidence_from(stored.at("evidence"));
    tuned.winners.push_back(std::move(winner));
  }
  return tuned;
}

}  // namespace

Status look_up(Session& s) {
  if (!s.registry) return {};
  for (Work& w : s.work) {
    TESSERA_TRY(found, s.registry->lookup(w.key, s.pattern(w.patterns.front()),
                                          s.evaluation.tools.fingerprint()));
    w.reuse = found.reuse;
    w.reuse_detail = found.detail;
    w.entry = std::move(found.entry);
    for (const int i : w.patterns) {
      rules::Pattern& p = s.found.discovery.patterns[static_cast<std::size_t>(i)];
      p.reuse = w.reuse;
      p.reuse_detail = w.reuse_detail;
    }
  }
  return {};
}

void reuse_one(Session& s, std::size_t at) {
  Work& w = s.work[at];
  if (w.reuse != rules::Reuse::reuse || !w.entry || s.options.retune) return;
  if (w.entry->status != "accepted") {
    w.skipped = "an earlier search on this machine found no kernel for it: " + w.reuse_detail;
    return;
  }
  auto revived = revive(s, w);
  if (revived) {
    w.tuned = std::move(*revived);
    s.say("reuse", s.place_of(at));
  } else {
    s.diagnostics.push_back(revived.error());
  }
}

}  // namespace tessera::pipeline
