// Which of a journey's candidates are its winners, by what is known of them.
#include <algorithm>
#include <chrono>

#include "base/clock.h"
#include "evaluate/journey_state.h"

namespace tessera::evaluate {
namespace {

using Clock = std::chrono::steady_clock;
using tune::Outcome;
using tune::Trial;

constexpr std::size_t most_winners = 4;
/// Of two times closer than this neither is the faster.
constexpr double noise = 1.01;

}  // namespace

// The measured points without those that were found wrong, best first. Final times replace earlier
// ones and come first, unless something was measured since.
std::vector<Trial> Journey::State::rank() const {
  std::map<Place, Trial> last;
  for (const Trial& t : search->outcomes().trials) {
    const Place place = place_of(t.point);
    if (t.outcome == Outcome::measured) {
      last[place] = t;
    } else if (last.contains(place)) {
      last.erase(place);
    }
  }
  std::vector<Trial> out_list;
  for (const auto& [place, t] : last) {
    if (!out.contains(place)) out_list.push_back(t);
  }
  const bool mixed = search->finals_due();
  const auto key = [&](const Trial& t) {
    return mixed ? std::pair(false, t.ms) : std::pair(!t.detail.contains("final"), t.judged_ms());
  };
  std::stable_sort(out_list.begin(), out_list.end(),
                   [&](const Trial& a, const Trial& b) { return key(a) < key(b); });
  return out_list;
}

const std::vector<Trial>& Journey::State::ranked() const {
  const std::tuple of(search->outcomes().trials.size(), out.size(), search->finals_due());
  if (of != ranked_of_) {
    ranked_ = rank();
    ranked_of_ = of;
  }
  return ranked_;
}

bool Journey::State::is_built(const Trial& t) const {
  return !candidate(t.point.candidate).source ||
         gates.built[static_cast<std::size_t>(t.point.candidate)];
}

// The pattern's own ops are what it means.
bool Journey::State::is_whole(const Trial& t) const {
  return whole.contains(place_of(t.point)) || gates.is_eager(t.point.candidate);
}

bool Journey::State::verify_whole(const Trial& t) {
  const int c = t.point.candidate;
  if (!is_built(t)) gates.build({c}, 0, std::atomic<bool>{false});
  if (!is_built(t)) {
    out.insert(place_of(t.point));
    return false;
  }
  const auto begin = Clock::now();
  auto [verdict, reply] = gates.verify(t.point, "full");
  rounds["verify"] += seconds_since(begin);
  if (verdict.outcome == Outcome::measured) {
    whole[place_of(t.point)] = std::move(reply);
    return true;
  }
  refused.push_back(std::move(verdict));
  out.insert(place_of(t.point));
  return false;
}

// The places among the winners: a few of the fastest, one launch of each, and the best of each
// kind.
std::vector<Trial> Journey::State::picked(const std::function<bool(const Trial&)>& allowed) const {
  std::vector<Trial> picks;
  std::set<kernel::Kind> kinds;
  std::set<int> taken;
  for (const Trial& t : ranked()) {
    if (candidate(t.point.candidate).peer || !allowed(t)) continue;
    const bool new_kind = !kinds.contains(candidate(t.point.candidate).kind);
    // The module's own run compares kernels that differ by more than their launches.
    if (!new_kind && (picks.size() >= most_winners || taken.contains(t.point.candidate))) continue;
    kinds.insert(candidate(t.point.candidate).kind);
    taken.insert(t.point.candidate);
    picks.push_back(t);
  }
  return picks;
}

void Journey::State::crown() {
  bool changed = true;
  while (changed && static_cast<int>(refused.size()) < most_refusals) {
    changed = false;
    for (const Trial& t : picked([](const Trial&) { return true; })) {
      if (whole.contains(place_of(t.point))) continue;
      if (verify_whole(t)) continue;
      changed = true;  // another takes its place
      break;
    }
  }
}

kernel::Winner Journey::State::winner_of(const Trial& t) const {
  const auto c = static_cast<std::size_t>(t.point.candidate);
  kernel::Winner w{.candidate = gates.candidates[c],
                   .launch = t.point.launch,
                   .built = gates.built[c],
                   .evidence = {}};
  w.evidence.ms = t.ms;
  w.evidence.ci95 = t.ci95;
  w.evidence.sustained_ms = t.detail.value("sustained_ms", 0.0);
  w.evidence.unreliable = t.detail.value("unreliable", false);
  const auto full = whole.find(place_of(t.point));
  const auto first = quick.find(t.point.candidate);
  if (full != whole.end())
    take_errors(w.evidence, full->second);
  else if (first != quick.end())
    take_errors(w.evidence, first->second);
  if (w.built) w.evidence.resources = w.built->resources;
  return w;
}

// The best that may be placed; the pattern's own ops where it is faster by noise alone.
const Trial* Journey::State::leader() const {
  const Trial* best = nullptr;
  for (const Trial& t : ranked()) {
    if (!may_be_placed(t.point.candidate)) continue;
    if (best == nullptr) best = &t;
    if (gates.is_eager(t.point.candidate)) return t.ms <= noise * best->ms ? &t : best;
  }
  return best;
}

}  // namespace tessera::evaluate
