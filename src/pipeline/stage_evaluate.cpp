// From patterns to kernels with evidence: look up, revive or tune, store.
#include <algorithm>
#include <chrono>
#include <ctime>
#include <fmt/format.h>
#include <set>

#include "pipeline/gains.h"
#include "pipeline/shares.h"
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

/// A pattern's candidates; those that won for its relative in the registry are marked.
evaluate::Offers offers_for(const Session& s, const Work& w) {
  const rules::Pattern& p = s.pattern(w.patterns.front());
  evaluate::Offers out = evaluate::offers(p, s.found.graph, *s.found.arch);
  if (!w.entry || w.entry->status != "accepted") return out;
  std::set<std::pair<std::string, std::string>> won;
  for (const Json& winner : w.entry->candidate.value("winners", Json::array())) {
    const Json& c = winner.at("candidate");
    won.emplace(c.at("realizer").get<std::string>(), c.at("config").dump());
  }
  for (realize::Candidate& c : out.candidates)
    c.proven = won.contains({c.realizer, c.config.dump()});
  return out;
}

// The candidates of the next patterns that will be tuned, for compilers that are idle meanwhile:
// what is reused, or an alternative to an earlier pattern (passed over when that one has a kernel),
// is not among them.
Status build_ahead(Session& s, std::size_t at) {
  constexpr std::size_t patterns_ahead = 3;
  std::vector<std::vector<realize::Candidate>> next;
  for (std::size_t i = at + 1; i < s.work.size() && next.size() < patterns_ahead; ++i) {
    const Work& w = s.work[i];
    const bool reused = w.reuse == rules::Reuse::reuse && w.entry && !s.options.retune;
    if (!w.alternative && !reused) next.push_back(offers_for(s, w).candidates);
  }
  return s.evaluator->build_later(next);
}

Status tune_one(Session& s, Work& w, double seconds) {
  const rules::Pattern& p = s.pattern(w.patterns.front());
  const evaluate::Offers offered = offers_for(s, w);
  Json known = Json::array();
  if (s.registry) {
    TESSERA_TRY(trials, s.registry->trials(w.key));
    known = std::move(trials);
  }
  static const std::atomic<bool> never{false};
  const std::atomic<bool>& stop = s.context.stop != nullptr ? *s.context.stop : never;
  TESSERA_TRY(
      tuned, s.evaluator->tune(p, offered.candidates, known, seconds, stop, [&](const Json& event) {
        Json more = event;
        more["pattern"] = p.id;
        more["summary"] = p.summary;
        if (s.registry && event.contains("trial")) {
          // Losing a note only costs a repeated trial after an interruption.
          (void)s.registry->note_trial(w.key, event.at("trial").value("label", ""),
                                       event.at("trial"));
        }
        s.say("tune", event.value("message", ""), more);
      }));
  w.tuned = std::move(tuned);
  for (const auto& u : offered.unsupported) w.tuned->unsupported.push_back(u);
  for (const auto& u : offered.pruned) w.tuned->pruned.push_back(u);
  return {};
}

}  // namespace

void group_by_signature(Session& s) {
  std::map<std::string, int> by_signature;
  const auto& patterns = s.found.discovery.patterns;
  for (int i = 0; i < static_cast<int>(patterns.size()); ++i) {
    const std::string signature = s.pattern(i).signature();
    if (const auto it = by_signature.find(signature); it != by_signature.end()) {
      s.work[static_cast<std::size_t>(it->second)].patterns.push_back(i);
      continue;
    }
    by_signature[signature] = static_cast<int>(s.work.size());
    Work w;
    w.patterns = {i};
    w.key = {.signature = signature,
             .precision = std::string(name_of(s.pattern(i).precision)),
             .device = s.device_name,
             .policy = registry::measuring_policy()};
    s.work.push_back(std::move(w));
  }
}

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

namespace {

using Clock = std::chrono::steady_clock;

std::string place_of(const Session& s, std::size_t at) {
  const rules::Pattern& p = s.pattern(s.work[at].patterns.front());
  return fmt::format("[{}/{}] {} {}: {}", at + 1, s.work.size(), p.id, p.rule, p.summary);
}

/// What the registry knows of one work, if it does. One whose kernels cannot be had again is tuned.
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
    s.say("reuse", place_of(s, at));
  } else {
    s.diagnostics.push_back(revived.error());
  }
}

/// Tunes one work, or says why not.
Status evaluate_one(Session& s, std::size_t at, Clock::time_point begin, bool may_be_covered) {
  Work& w = s.work[at];
  if (s.stopped()) {
    w.skipped = "stopped before it was reached";
    return {};
  }
  double left = 0;
  if (s.options.seconds > 0) {
    left = s.options.seconds - std::chrono::duration<double>(Clock::now() - begin).count();
    if (left <= 0) {
      w.skipped =
          fmt::format("the budget of {:.0f} s was spent before it was reached", s.options.seconds);
      return {};
    }
  }
  w.skipped = may_be_covered ? covered_by(s, w) : "";
  w.covered = !w.skipped.empty();
  if (w.covered) return {};
  s.say("tune", place_of(s, at));
  if (left > 0) left = share_of(s.work, s.found.discovery.patterns, at, left, s.options.seconds);
  TESSERA_CHECK(build_ahead(s, at));
  if (auto status = tune_one(s, w, left); !status) {
    // One pattern that cannot be evaluated costs itself alone.
    w.skipped = "could not be evaluated: " + status.error().message;
    s.diagnostics.push_back(status.error());
    return {};
  }
  return s.stopped() ? Status{} : remember(s, w);
}

/// Works that were passed over for others' kernels which the composer then leaves out, as another
/// pattern takes some of their ops: all of the work's own ops would be left to PyTorch.
std::vector<std::size_t> uncovered_again(Session& s) {
  choose_kernels(s);
  std::set<graph::NodeId> done;
  for (const int o : s.choice.chosen) {
    const auto& nodes = s.placed_options[static_cast<std::size_t>(o)].pattern->computing;
    done.insert(nodes.begin(), nodes.end());
  }
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < s.work.size(); ++i) {
    if (!s.work[i].covered) continue;
    const bool left = std::any_of(s.work[i].patterns.begin(), s.work[i].patterns.end(), [&](int p) {
      const auto& nodes = s.pattern(p).computing;
      return std::none_of(nodes.begin(), nodes.end(),
                          [&](graph::NodeId n) { return done.contains(n); });
    });
    if (left) out.push_back(i);
  }
  return out;
}

}  // namespace

Status evaluate_work(Session& s) {
  order_work(s.work, s.found.discovery.patterns);
  const auto begin = Clock::now();
  // First, so that no seconds are kept for what needs none.
  for (std::size_t at = 0; at < s.work.size(); ++at) reuse_one(s, at);
  for (std::size_t at = 0; at < s.work.size(); ++at) {
    if (s.work[at].to_come()) TESSERA_CHECK(evaluate_one(s, at, begin, true));
  }
  // The largest first, one at a time: its kernel may cover the others.
  while (!s.stopped()) {
    const std::vector<std::size_t> again = uncovered_again(s);
    if (again.empty()) break;
    const std::size_t next = *std::max_element(again.begin(), again.end(), [&](auto a, auto b) {
      return s.pattern(s.work[a].patterns.front()).priority <
             s.pattern(s.work[b].patterns.front()).priority;
    });
    s.work[next].covered = false;
    TESSERA_CHECK(evaluate_one(s, next, begin, false));
  }
  return {};
}

}  // namespace tessera::pipeline
