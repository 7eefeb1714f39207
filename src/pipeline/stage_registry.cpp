// What the registry knows of a work: looked up, brought back to life, timed again where it is
// another's word or of other libraries.
#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <set>

#include "pipeline/stages.h"

namespace tessera::pipeline {
namespace {

using kernel::Winner;
using registry::Standing;

inline constexpr Code not_offered{"TS0640", "registry.not_offered"};

// With the launch that is stored, if the candidate has it, as its only one; else with its default.
kernel::Candidate with_launch(kernel::Candidate c, const Winner& stored) {
  if (c.launches.empty()) return c;
  const Json knobs = stored.launched().knobs;
  const auto at = std::find_if(c.launches.begin(), c.launches.end(), [&](const kernel::Launch& l) {
    return kernel::same(l.knobs, knobs);
  });
  c.launches = {at == c.launches.end() ? c.launches.front() : *at};
  return c;
}

const kernel::Candidate* offered(const evaluate::Offers& offers, const Winner& stored) {
  return pipeline::offered(offers.candidates, stored.candidate.realizer, stored.candidate.config);
}

bool in_cache(const Session& s, const kernel::Candidate& c) {
  return !c.source ||
         toolchain::find_built(s.tools.evaluation.tools, *c.source, s.tools.evaluation.cache);
}

// The winners of our own entry, built from the cache, or again when the cache was pruned and
// `may_build`.
Result<evaluate::Tuned> revive(Session& s, Work& w, bool may_build) {
  const registry::Entry& e = *w.own;
  evaluate::Tuned tuned;
  tuned.stopped_because = "reused from the registry";
  tuned.eager_ms = e.eager_ms;
  for (const Winner& stored : e.winners) {
    TESSERA_TRY(candidate, own_candidate(s, w, stored));
    if (!may_build && !in_cache(s, candidate)) continue;
    TESSERA_TRY(winner,
                s.tools.evaluator->revive(s.pattern(w.patterns.front()), candidate, 0, false));
    winner.evidence = stored.evidence;
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

bool any_offered(const Session& s, Work& w, const registry::Entry& e) {
  const evaluate::Offers& offers = offers_of(s, w);
  return std::any_of(e.winners.begin(), e.winners.end(),
                     [&](const Winner& stored) { return offered(offers, stored) != nullptr; });
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

const kernel::Candidate* offered(const std::vector<kernel::Candidate>& offers,
                                 const std::string& realizer, const Json& config) {
  const auto at = std::find_if(offers.begin(), offers.end(), [&](const kernel::Candidate& c) {
    return c.realizer == realizer && kernel::same(c.config, config);
  });
  return at == offers.end() ? nullptr : &*at;
}

Result<kernel::Candidate> own_candidate(const Session& s, Work& w, const Winner& stored) {
  if (stored.candidate.can_run()) return stored.candidate;
  const kernel::Candidate* c = offered(offers_of(s, w), stored);
  if (c != nullptr) return with_launch(*c, stored);
  return error(fail(kernel::bad_candidate,
                    "what was stored of `{}` cannot be built, and no realizer offers it any more",
                    stored.candidate.label())
                   .help("`tessera registry prune` drops the entry; the pattern is then tuned "
                         "anew"));
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
  return {.toolchain = s.tools.toolchain,
          .asked = asked_of(s, w),
          .libraries = s.found.graph.meta.value("libraries", Json::object())};
}

Status look_up_within_memory(Session& s) {
  const bool limited = std::any_of(s.work.begin(), s.work.end(), [](const Work& w) {
    return w.own && std::any_of(w.own->search.passes.begin(), w.own->search.passes.end(),
                                [](const registry::Pass& p) { return p.left_out_from > 0; });
  });
  if (!limited || !s.baseline.call_bytes) return {};
  TESSERA_CHECK(look_up(s));
  TESSERA_CHECK(check_builders(s));
  return wake_evaluator(s);
}

Status look_up(Session& s) {
  if (!s.tools.registry) return {};
  for (Work& w : s.work) {
    const rules::Pattern& p = s.pattern(w.patterns.front());
    const registry::Here here = here_of(s, w);
    TESSERA_TRY(found, s.tools.registry->lookup(w.key, p, here));
    take(s, w, std::move(found));
    if (!w.imported || any_offered(s, w, *w.imported)) continue;
    s.diagnostics.push_back(of_no_use(s, w, "no realizer here offers its configurations"));
    TESSERA_CHECK(s.tools.registry->forget_imported(w.key, here.toolchain));
    TESSERA_TRY(without, s.tools.registry->lookup(w.key, p, here));
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
std::vector<kernel::Candidate> to_recheck(const Session& s, Work& w,
                                          std::set<std::string>& of_import) {
  std::vector<kernel::Candidate> out;
  const evaluate::Offers& offers = offers_of(s, w);
  const auto add = [&](kernel::Candidate c) {
    const bool there = std::any_of(out.begin(), out.end(), [&](const kernel::Candidate& o) {
      return o.realizer == c.realizer && kernel::same(o.config, c.config);
    });
    if (!there) out.push_back(std::move(c));
  };
  if (w.imported) {
    for (const Winner& stored : w.imported->winners) {
      const kernel::Candidate* c = offered(offers, stored);
      if (c == nullptr) continue;
      of_import.insert(c->realizer + c->config.dump());
      add(with_launch(*c, stored));
    }
  }
  if (w.own) {
    for (const Winner& stored : w.own->winners) {
      if (auto c = own_candidate(s, w, stored); c && c->source) add(std::move(*c));
    }
  }
  for (const kernel::Candidate& c : offers.candidates) {
    if (c.kind == kernel::Kind::library) add(c);
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
  const std::vector<kernel::Candidate> candidates = to_recheck(s, w, of_import);
  TESSERA_TRY(known, known_trials(s, w, candidates));
  std::erase_if(known.get_ref<Json::array_t&>(), [](const Json& trial) {
    return trial.value("outcome", "") != tune::name_of(tune::Outcome::wrong_result);
  });
  static const std::atomic<bool> never{false};
  const std::atomic<bool>& stop = s.context.stop != nullptr ? *s.context.stop : never;
  bool imported_ran = false;
  s.say("recheck", s.place_of(at) + ": " + w.reuse_detail);
  TESSERA_TRY(tuned,
              s.tools.evaluator->tune(s.pattern(w.patterns.front()), candidates, known,
                                      seconds_to_recheck(s, w), stop, [&](const Json& event) {
                                        if (!event.contains("trial")) return;
                                        const Json& t = event.at("trial");
                                        note_trial(s, w, t);
                                        imported_ran = imported_ran ||
                                                       (t.value("outcome", "") == "measured" &&
                                                        of_import.contains(t.value("realizer", "") +
                                                                           t.at("config").dump()));
                                      }));
  if (s.stopped()) return {};
  if (w.imported && !imported_ran) {
    s.diagnostics.push_back(of_no_use(s, w, "none of its kernels passed its gates"));
    TESSERA_CHECK(s.tools.registry->forget_imported(w.key, s.tools.toolchain));
    w.imported.reset();
  }
  // Before `imported` is gone it decides.
  const bool enough = searched_enough(s, w) && !tuned.winners.empty();
  w.tuned = std::move(tuned);
  w.rechecked = true;
  TESSERA_CHECK(remember(s, w));
  if (enough) return {};
  // A start, from which the search goes on.
  TESSERA_TRY(again, s.tools.registry->lookup(w.key, s.pattern(w.patterns.front()), here_of(s, w)));
  w.tuned.reset();
  w.rechecked = w.beside_own = false;
  take(s, w, std::move(again));
  return {};
}

bool needs_recheck(const Session& s, const Work& w) {
  if (s.options.retune) return false;
  return w.imported || (w.standing && *w.standing == Standing::other_libraries);
}

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
  if (!w.own->accepted()) {
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

}  // namespace

void reuse(Session& s) {
  for (std::size_t at = 0; at < s.work.size(); ++at) reuse_one(s, at);
}

namespace {

/// A winner as the only launch of its candidate.
kernel::Candidate as_it_won(const Winner& w) {
  kernel::Candidate c = w.candidate;
  if (c.source) c.launches = {w.launched()};
  c.proven = true;
  return c;
}

/// The winners of the search and those of before, with eager, in one measurement.
Result<evaluate::Tuned> side_by_side(Session& s, Work& w, const evaluate::Tuned& before) {
  std::vector<kernel::Candidate> all;
  const std::array<const std::vector<Winner>*, 2> both{&before.winners, &w.tuned->winners};
  for (const std::vector<Winner>* winners : both) {
    for (const Winner& one : *winners) {
      if (pipeline::offered(all, one.candidate.realizer, one.candidate.config) == nullptr)
        all.push_back(as_it_won(one));
    }
  }
  for (const kernel::Candidate& c : offers_of(s, w).candidates) {
    const bool there =
        std::any_of(all.begin(), all.end(), [](const auto& o) { return o.is_eager(); });
    if (c.is_eager() && !there) all.push_back(c);
  }
  static const std::atomic<bool> never{false};
  return s.tools.evaluator->tune(
      s.pattern(w.patterns.front()), all, Json::array(), seconds_to_recheck(s, w),
      s.context.stop != nullptr ? *s.context.stop : never, [&](const Json& event) {
        if (event.contains("trial")) note_trial(s, w, event.at("trial"));
      });
}

bool has(const evaluate::Tuned& tuned, const Winner& w) {
  return std::any_of(tuned.winners.begin(), tuned.winners.end(),
                     [&](const Winner& other) { return other.is_of(w.candidate); });
}

/// Where the search did not come to what was found before, its figures are of another moment and
/// rank nothing: both are timed together, or what was stored comes first, with its own eager.
void keep_beside(Session& s, Work& w, evaluate::Tuned before) {
  evaluate::Tuned& now = *w.tuned;
  if (!s.stopped()) {
    auto timed = side_by_side(s, w, before);
    if (timed && !timed->winners.empty()) {
      now.winners = std::move(timed->winners);
      now.eager_ms = timed->eager_ms;
      if (auto status = remember(s, w); !status) s.diagnostics.push_back(status.error());
      return;
    }
    if (!timed) s.diagnostics.push_back(timed.error());
  }
  const bool figures = *w.standing != Standing::unreliable;
  if (figures) {
    std::swap(now.winners, before.winners);
    now.eager_ms = before.eager_ms;
  }
  for (Winner& winner : before.winners)
    if (!has(now, winner)) now.winners.push_back(std::move(winner));
}

}  // namespace

void keep_what_was_found(Session& s) {
  for (std::size_t at = 0; at < s.work.size(); ++at) {
    Work& w = s.work[at];
    const bool stands = w.own && w.own->accepted();
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
    keep_beside(s, w, std::move(*before));
  }
}

}  // namespace tessera::pipeline
