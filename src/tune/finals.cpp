// The end of a search: its leaders side by side, in one measurement. What was measured minutes
// apart is not comparable to a percent.
#include <algorithm>
#include <cmath>

#include "tune/search.h"

namespace tessera::tune {
namespace {

constexpr int finalists = 6;
constexpr int launches_of_a_finalist = 2;
constexpr double sibling_reach = 1.03;  // further launches of the leader that come with it
/// Two times of one kernel further apart than this are no figure.
constexpr double unreliable = 2.0;
constexpr double seconds_a_finalist = 0.7;

bool agree(double a, double b) {
  return a <= unreliable * b && b <= unreliable * a;
}

}  // namespace

double Search::finals_seconds() const {
  int points = 0;
  for (const auto& [c, s] : states_) points += s.failed ? 0 : static_cast<int>(s.measured.size());
  return seconds_a_finalist * std::min(points, finalists);
}

std::vector<Point> Search::final_points() {
  std::vector<Trial> all;
  for (const auto& [c, s] : states_) {
    for (const auto& [launch, t] : s.measured) {
      if (!s.failed) all.push_back(t);
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Trial& a, const Trial& b) { return a.ms < b.ms; });
  std::vector<Point> out;
  std::set<std::string> families;
  std::map<int, int> launches;
  int places = 0;
  for (const Trial& t : all) {
    const int c = t.point.candidate;
    const bool first = families.insert(item(c).family).second;
    const bool room = places < finalists && launches[c] < launches_of_a_finalist;
    // Launches of one kernel differ little on a rested clock and by several percent under load.
    const bool sibling =
        !out.empty() && c == out.front().candidate && t.ms <= sibling_reach * all.front().ms;
    // What won before is judged beside what is new, whatever its earlier figures say.
    const bool proven = item(c).proven && launches[c] == 0;
    if ((!first && !room && !sibling && !proven) || !usable(c)) continue;
    if (room || first) ++places;
    ++launches[c];
    out.push_back(t.point);
  }
  return out;
}

// Where a final time is far from the search's, all are measured once more. Two of three times that
// agree are a figure.
std::vector<Trial> Search::measure_finals(const std::vector<Point>& points) {
  std::vector<Trial> trials = calls_.measure(points, Round::finals);
  const auto earlier = [&](std::size_t i) {
    return states_.at(points[i].candidate).measured.at(points[i].launch).ms;
  };
  const auto far = [&](std::size_t i) {
    return trials[i].outcome == Outcome::measured && !agree(trials[i].ms, earlier(i));
  };
  bool again = false;
  trials.resize(std::min(trials.size(), points.size()));
  for (std::size_t i = 0; i < trials.size(); ++i) again = again || far(i);
  if (!again) return trials;
  std::vector<Trial> second = calls_.measure(points, Round::finals);
  for (std::size_t i = 0; i < trials.size() && i < second.size(); ++i) {
    if (trials[i].outcome != Outcome::measured) continue;
    const double first = trials[i].ms;
    trials[i] = second[i];
    if (trials[i].outcome == Outcome::measured && !agree(trials[i].ms, first) &&
        !agree(trials[i].ms, earlier(i)))
      trials[i].detail["unreliable"] = true;
  }
  return trials;
}

void Search::finals() {
  const auto begin = Clock::now();
  const std::vector<Point> points = stop_.load() ? std::vector<Point>{} : final_points();
  finals_due_ = false;
  if (points.empty()) return;
  const std::vector<Trial> trials = measure_finals(points);
  std::optional<Trial> best;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    Trial t = trials[i];
    t.point = points[i];
    t.detail["final"] = true;
    out_.trials.push_back(t);
    if (calls_.record) calls_.record(t);
    if (t.outcome == Outcome::measured && (!best || t.judged_ms() < best->judged_ms())) best = t;
  }
  out_.best.reset();
  out_.best_ms = 0;
  if (best) {
    out_.best = best->point;
    out_.best_ms = best->ms;
  }
  tell(Round::finals, measurements_);
  count(begin);
}

}  // namespace tessera::tune
