// From patterns to candidates: what the realizers offer, less what cannot win here.
#include <algorithm>
#include <chrono>
#include <fmt/format.h>

#include "base/clock.h"
#include "base/parallel.h"
#include "pipeline/by_hand_measure.h"
#include "pipeline/stages.h"

namespace tessera::pipeline {

const evaluate::Offers& offers_of(const Session& s, Work& w) {
  if (!w.offers)
    w.offers = evaluate::offers(s.pattern(w.patterns.front()), s.found.graph, *s.found.arch);
  return *w.offers;
}

namespace {

/// What needs more memory than the module may take wins nothing. The least that was left out; 0:
/// nothing was.
int64_t leave_out_large(evaluate::Offers& offers, std::optional<int64_t> limit) {
  if (!limit) return 0;
  int64_t least = 0;
  const auto large = std::erase_if(offers.candidates, [&](const kernel::Candidate& c) {
    if (c.workspace_bytes <= *limit) return false;
    least = least == 0 ? c.workspace_bytes : std::min(least, c.workspace_bytes);
    return true;
  });
  if (large == 0) return 0;
  offers.pruned.emplace_back(
      fmt::format("workspaces over the {:.1f} MB that leave the module within PyTorch's memory",
                  static_cast<double>(*limit) * 1e-6),
      static_cast<int>(large));
  return least;
}

/// Winners that no realizer offers, as kernels by hand, are among the candidates: a search that did
/// not time them could only hold its figures to theirs, which are of another moment. Of another
/// toolchain kernels by hand alone: what a realizer makes no more it may have had reasons for.
void add_stored(const Session& s, Work& w) {
  const auto add = [&](const registry::Entry& e, bool all) {
    for (const kernel::Winner& stored : e.winners) {
      const kernel::Candidate& c = stored.candidate;
      if (!all && c.realizer != by_hand_realizer) continue;
      if (offered(w.offers->candidates, c.realizer, c.config) != nullptr) continue;
      if (auto own = own_candidate(s, w, stored)) w.offers->candidates.push_back(std::move(*own));
    }
  };
  if (w.own) add(*w.own, true);
  if (w.entry && w.entry->key.hash() == w.key.hash()) add(*w.entry, false);
}

/// Marks those that won before, here or for a relative in the registry.
void mark_proven(const Work& w, evaluate::Offers& offers) {
  for (const std::optional<registry::Entry>* entry : {&w.entry, &w.own}) {
    if (!*entry) continue;
    for (const kernel::Winner& winner : (*entry)->winners)
      for (kernel::Candidate& c : offers.candidates) c.proven = c.proven || winner.is_of(c);
  }
}

/// Those of a work's candidates that a search may take; the work has them no longer.
evaluate::Offers searchable(const Session& s, Work& w) {
  offers_of(s, w);
  add_stored(s, w);
  evaluate::Offers out = std::move(*w.offers);
  w.offers.reset();
  w.left_out_from = leave_out_large(out, workspace_limit(s, w));
  mark_proven(w, out);
  if (s.options.effort != "max") evaluate::leave_out_slow_builds(out);
  return out;
}

}  // namespace

std::vector<Realized> realize(Session& s) {
  using Clock = std::chrono::steady_clock;
  std::vector<Realized> out;
  for (std::size_t at = 0; at < s.work.size(); ++at) {
    if (s.work[at].tuned || !s.work[at].skipped.empty()) continue;
    out.push_back({.work = at});
  }
  if (s.stopped()) return out;
  // A realizer is a function of the pattern, the graph and the architecture; a work is its thread's
  // own. One after the other a module of 60 works takes 4 s of its search.
  in_parallel(out.size(), [&](std::size_t i) {
    Realized& of_one = out[i];
    const auto begin = Clock::now();
    of_one.offers = searchable(s, s.work[of_one.work]);
    of_one.seconds = seconds_since(begin);
  });
  return out;
}

}  // namespace tessera::pipeline
