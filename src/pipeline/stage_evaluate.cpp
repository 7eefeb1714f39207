// From patterns to kernels with evidence: in which order, and for how long, each is tuned.
#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <set>

#include "pipeline/gains.h"
#include "pipeline/shares.h"
#include "pipeline/stages.h"

namespace tessera::pipeline {
namespace {

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
  TESSERA_TRY(known, known_trials(s, w, offered.candidates));
  static const std::atomic<bool> never{false};
  const std::atomic<bool>& stop = s.context.stop != nullptr ? *s.context.stop : never;
  TESSERA_TRY(
      tuned, s.evaluator->tune(p, offered.candidates, known, seconds, stop, [&](const Json& event) {
        Json more = event;
        more["pattern"] = p.id;
        more["summary"] = p.summary;
        if (event.contains("trial")) note_trial(s, w, event.at("trial"));
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

namespace {

using Clock = std::chrono::steady_clock;

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
  s.say("tune", s.place_of(at));
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
  keep_what_was_found(s);
  return {};
}

}  // namespace tessera::pipeline
