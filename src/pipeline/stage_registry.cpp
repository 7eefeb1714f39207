// What the registry knows of a work: looked up, brought back to life, timed again where it is
// another's word or of other libraries.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <set>

#include "pipeline/stages.h"
#include "registry/winners.h"

namespace tessera::pipeline {
namespace {

using registry::Standing;
using Winner = evaluate::Tuned::Winner;

inline constexpr Code not_offered{"TS0640", "registry.not_offered"};

evaluate::Offers offers_of(const Session& s, const Work& w) {
  return evaluate::offers(s.pattern(w.patterns.front()), s.found.graph, *s.found.arch);
}

// ordered_json compares keys in their order; those of a file may have another.
bool same(const Json& a, const Json& b) {
  if (!a.is_object() || !b.is_object()) return a == b;
  return a.size() == b.size() &&
         std::all_of(a.items().begin(), a.items().end(), [&](const auto& item) {
           return b.contains(item.key()) && same(item.value(), b.at(item.key()));
         });
}

evaluate::Evidence evidence_from(const Json& j) {
  evaluate::Evidence e;
  e.ms = j.value("ms", 0.0);
  e.ci95 = j.value("ci95", 0.0);
  e.sustained_ms = j.value("sustained_ms", 0.0);
  e.max_error = j.value("max_error", 0.0);
  e.rms_error = j.value("rms_error", 0.0);
  e.baseline_max_error = j.value("baseline_max_error", 0.0);
  e.baseline_rms_error = j.value("baseline_rms_error", 0.0);
  e.unreliable = j.value("unreliable", false);
  e.resources = j.value("resources", Json::object());
  return e;
}

// With the launch that is stored, if the candidate has it, as its only one; else with its default.
realize::Candidate with_launch(realize::Candidate c, const Json& stored) {
  if (c.launches.empty()) return c;
  const Json knobs = stored.value("launch", Json::object()).value("knobs", Json::object());
  const auto at = std::find_if(c.launches.begin(), c.launches.end(),
                               [&](const realize::Launch& l) { return same(l.knobs, knobs); });
  c.launches = {at == c.launches.end() ? c.launches.front() : *at};
  return c;
}

// A winner of our own entry as it was stored; where that cannot be relied on, its realizer makes it
// again.
Result<realize::Candidate> own_candidate(const Session& s, const Work& w, const Json& stored) {
  Result<realize::Candidate> kept = candidate_from_record(stored.at("candidate"));
  if (kept) {
    const Json& launch = stored.at("launch");
    kept->launches = {realize::Launch{.knobs = launch.at("knobs"), .ints = launch.at("ints")}};
    return kept;
  }
  const evaluate::Offers offers = offers_of(s, w);
  const realize::Candidate* c = offered(offers.candidates, stored.at("candidate"));
  if (c == nullptr) return kept;
  return with_launch(*c, stored);
}

bool in_cache(const Session& s, const realize::Candidate& c) {
  return !c.source || toolchain::find_built(s.evaluation.tools, *c.source, s.evaluation.cache);
}

// The winners of our own entry, built from the cache, or again when the cache was pruned and
// `may_build`.
Result<evaluate::Tuned> revive(Session& s, const Work& w, bool may_build) {
  const registry::Entry& e = *w.own;
  evaluate::Tuned tuned;
  tuned.stopped_because = "reused from the registry";
  tuned.eager_ms = e.candidate.value("eager_ms", 0.0);
  for (const Json& stored : registry::winners_of(e)) {
    TESSERA_TRY(candidate, own_candidate(s, w, stored));
    if (!may_build && !in_cache(s, candidate)) continue;
    TESSERA_TRY(winner, s.evaluator->revive(s.pattern(w.patterns.front()), candidate, 0, false));
    winner.evidence = evidence_from(stored.at("evidence"));
    tuned.winners.push_back(std::move(winner));
  }
  return tuned;
}

void take(Session& s, Work& w, registry::Lookup found) {
  w.reuse = found.reuse;
  w.reuse_detail = found.detail;
  w.entry = std::move(found.entry);
  w.own = std::move(found.own);
  w.standing = found.standing;
  w.imported = std::move(found.imported);
  for (const int i : w.patterns) {
    rules::Pattern& p = s.found.discovery.patterns[static_cast<std::size_t>(i)];
    p.reuse = w.reuse;
    p.reuse_detail = w.reuse_detail;
  }
}

bool any_offered(const Session& s, const Work& w, const registry::Entry& e) {
  const evaluate::Offers offers = offers_of(s, w);
  const Json& winners = registry::winners_of(e);
  return std::any_of(winners.begin(), winners.end(), [&](const Json& stored) {
    return offered(offers.candidates, stored.at("candidate")) != nullptr;
  });
}

Diagnostic of_no_use(const Session& s, const Work& w, std::string_view why) {
  Diagnostic d = fail(not_offered, "what was imported from {} for {} is of no use here",
                      w.imported->provenance.file, s.pattern(w.patterns.front()).id)
                     .but_found("{}", why)
                     .help("the pattern is tuned as if it had not been imported");
  d.level = Level::warning;
  return d;
}

}  // namespace

const realize::Candidate* offered(const std::vector<realize::Candidate>& offers,
                                  const Json& stored) {
  const auto at = std::find_if(offers.begin(), offers.end(), [&](const realize::Candidate& c) {
    return c.realizer == stored.value("realizer", "") &&
           same(c.config, stored.value("config", Json::object()));
  });
  return at == offers.end() ? nullptr : &*at;
}

registry::Asked asked_of(const Session& s, const Work& w) {
  registry::Asked asked{.effort = s.options.effort};
  if (const auto limit = workspace_limit(s, w))
    asked.scratch = static_cast<double>(*limit);
  else if (!settles(s))
    asked.scratch = INFINITY;
  if (s.options.seconds <= 0) return asked;
  double all = 0;
  for (const Work& other : s.work) all += s.pattern(other.patterns.front()).unfused_ms;
  const double mine = s.pattern(w.patterns.front()).unfused_ms;
  asked.seconds = all > 0 ? s.options.seconds * mine / all : s.options.seconds;
  return asked;
}

registry::Here here_of(const Session& s, const Work& w) {
  return {.toolchain = s.toolchain,
          .asked = asked_of(s, w),
          .libraries = s.found.graph.meta.value("libraries", Json::object())};
}

Status look_up_within_memory(Session& s) {
  const bool limited = std::any_of(s.work.begin(), s.work.end(), [](const Work& w) {
    return w.own && std::any_of(w.own->search.passes.begin(), w.own->search.passes.end(),
                                [](const registry::Pass& p) { return p.left_out_from > 0; });
  });
  if (!limited || !s.call_bytes) return {};
  TESSERA_CHECK(look_up(s));
  TESSERA_CHECK(check_builders(s));
  return wake_evaluator(s);
}

Status look_up(Session& s) {
  if (!s.registry) return {};
  for (Work& w : s.work) {
    const rules::Pattern& p = s.pattern(w.patterns.front());
    const registry::Here here = here_of(s, w);
    TESSERA_TRY(found, s.registry->lookup(w.key, p, here));
    take(s, w, std::move(found));
    if (!w.imported || any_offered(s, w, *w.imported)) continue;
    s.diagnostics.push_back(of_no_use(s, w, "no realizer here offers its configurations"));
    TESSERA_CHECK(s.registry->forget_imported(w.key, here.toolchain));
    TESSERA_TRY(without, s.registry->lookup(w.key, p, here));
    take(s, w, std::move(without));
  }
  return {};
}

namespace {

/// Whether a search as thorough as asked is behind what is rechecked, so that none need follow.
bool searched_enough(const Session& s, const Work& w) {
  const registry::Asked asked = asked_of(s, w);
  if (w.standing && *w.standing == Standing::other_libraries) return true;
  return (w.standing && *w.standing == Standing::holds) ||
         (w.imported && satisfies(w.imported->search, asked));
}

/// What is timed again: the winners that are known, made by our own realizers where they come from
/// elsewhere, and all kernels of the libraries. `of_import` counts the candidates of the imported.
std::vector<realize::Candidate> to_recheck(const Session& s, const Work& w,
                                           std::set<std::string>& of_import) {
  std::vector<realize::Candidate> out;
  const evaluate::Offers offers = offers_of(s, w);
  const auto add = [&](realize::Candidate c) {
    const bool there = std::any_of(out.begin(), out.end(), [&](const realize::Candidate& o) {
      return o.realizer == c.realizer && same(o.config, c.config);
    });
    if (!there) out.push_back(std::move(c));
  };
  if (w.imported) {
    for (const Json& stored : registry::winners_of(*w.imported)) {
      const realize::Candidate* c = offered(offers.candidates, stored.at("candidate"));
      if (c == nullptr) continue;
      of_import.insert(c->realizer + c->config.dump());
      add(with_launch(*c, stored));
    }
  }
  if (w.own) {
    for (const Json& stored : registry::winners_of(*w.own)) {
      if (auto c = own_candidate(s, w, stored); c && c->source) add(std::move(*c));
    }
  }
  for (const realize::Candidate& c : offers.candidates) {
    if (c.kind == realize::Kind::library) add(c);
  }
  return out;
}

double seconds_to_recheck(const Session& s, const Work& w) {
  constexpr double least = 15;  // opening a pattern and one batch of builds
  return s.options.seconds > 0 ? std::max(least, asked_of(s, w).seconds) : 0;
}

/// Builds, verifies and times what the registry has but cannot answer for. What comes of it is our
/// own; whether a search follows is up to how thorough the one behind it was.
Status recheck(Session& s, std::size_t at) {
  Work& w = s.work[at];
  std::set<std::string> of_import;
  const std::vector<realize::Candidate> candidates = to_recheck(s, w, of_import);
  TESSERA_TRY(known, known_trials(s, w, candidates));
  std::erase_if(known.get_ref<Json::array_t&>(), [](const Json& trial) {
    return trial.value("outcome", "") != tune::name_of(tune::Outcome::wrong_result);
  });
  static const std::atomic<bool> never{false};
  const std::atomic<bool>& stop = s.context.stop != nullptr ? *s.context.stop : never;
  bool imported_ran = false;
  s.say("recheck", s.place_of(at) + ": " + w.reuse_detail);
  TESSERA_TRY(tuned, s.evaluator->tune(s.pattern(w.patterns.front()), candidates, known,
                                       seconds_to_recheck(s, w), stop, [&](const Json& event) {
                                         if (!event.contains("trial")) return;
                                         const Json& t = event.at("trial");
                                         note_trial(s, w, t);
                                         imported_ran =
                                             imported_ran ||
                                             (t.value("outcome", "") == "measured" &&
                                              of_import.contains(t.value("realizer", "") +
                                                                 t.at("config").dump()));
                                       }));
  if (s.stopped()) return {};
  if (w.imported && !imported_ran) {
    s.diagnostics.push_back(of_no_use(s, w, "none of its kernels passed its gates"));
    TESSERA_CHECK(s.registry->forget_imported(w.key, s.toolchain));
    w.imported.reset();
  }
  // Before `imported` is gone it decides.
  const bool enough = searched_enough(s, w) && !tuned.winners.empty();
  w.tuned = std::move(tuned);
  w.rechecked = true;
  TESSERA_CHECK(remember(s, w));
  if (enough) return {};
  // A start, from which the search goes on.
  TESSERA_TRY(again, s.registry->lookup(w.key, s.pattern(w.patterns.front()), here_of(s, w)));
  w.tuned.reset();
  w.rechecked = w.beside_own = false;
  take(s, w, std::move(again));
  return {};
}

bool needs_recheck(const Session& s, const Work& w) {
  if (s.options.retune) return false;
  return w.imported || (w.standing && *w.standing == Standing::other_libraries);
}

/// Of two sessions, so only as good as their clocks agree.
double judged_ms(const Winner& w) {
  const evaluate::Evidence& e = w.evidence;
  return e.sustained_ms > 0 ? std::sqrt(e.ms * e.sustained_ms) : e.ms;
}

bool has(const evaluate::Tuned& tuned, const Winner& w) {
  return std::any_of(tuned.winners.begin(), tuned.winners.end(), [&](const Winner& other) {
    return other.candidate.realizer == w.candidate.realizer &&
           same(other.candidate.config, w.candidate.config);
  });
}

}  // namespace

void reuse_one(Session& s, std::size_t at) {
  Work& w = s.work[at];
  if (needs_recheck(s, w)) {
    if (auto status = recheck(s, at); !status) {
      s.diagnostics.push_back(status.error());
      return;
    }
    if (w.tuned || s.stopped()) return;
  }
  if (w.reuse != rules::Reuse::reuse || !w.own || s.options.retune) return;
  if (w.own->status != "accepted") {
    w.skipped = "an earlier search on this machine found no kernel for it: " + w.reuse_detail;
    return;
  }
  auto revived = revive(s, w, true);
  if (revived) {
    w.tuned = std::move(*revived);
    w.reused = true;
    s.say("reuse", s.place_of(at));
  } else {
    s.diagnostics.push_back(revived.error());
  }
}

void keep_what_was_found(Session& s) {
  for (std::size_t at = 0; at < s.work.size(); ++at) {
    Work& w = s.work[at];
    const bool stands = w.own && w.own->status == "accepted";
    if (!stands || w.reused || w.rechecked || w.beside_own) continue;
    auto before = revive(s, w, !s.stopped());
    if (!before) {
      s.diagnostics.push_back(before.error());
      continue;
    }
    if (before->winners.empty()) continue;
    s.say("reuse", s.place_of(at) + ": what an earlier search found stays");
    if (!w.tuned) {
      w.tuned = std::move(*before);
      w.skipped.clear();
      continue;
    }
    for (Winner& winner : before->winners) {
      if (!has(*w.tuned, winner)) w.tuned->winners.push_back(std::move(winner));
    }
    if (*w.standing == Standing::unreliable) continue;
    std::stable_sort(w.tuned->winners.begin(), w.tuned->winners.end(),
                     [](const Winner& a, const Winner& b) { return judged_ms(a) < judged_ms(b); });
  }
}

}  // namespace tessera::pipeline
