#include "tune/search.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace tessera::tune {
namespace {

constexpr int patience_floor = 32;      // built candidates before "no gain" may end the builds
constexpr int patience = 16;            // candidates in a row without gain
constexpr double gain = 0.995;          // faster by half a percent counts as a gain
constexpr int leaders_swept = 4;        // candidates whose run-time launches are swept
constexpr double sweep_reach = 1.15;    // a leader is within this factor of the best
constexpr std::size_t sweep_group = 8;  // points measured side by side
/// Relative, of the launches of one kernel about its default.
constexpr double sweep_deviation = 0.04;
constexpr double building_share = 0.8;  // of the budget of seconds; the rest is for the sweep
/// A build that takes longer than expected by less than this may still be in time.
constexpr double in_time = 0.7;
constexpr double measure_seconds_guess = 0.15;  // a point, with its verification
constexpr double at_once = 0.001;               // seconds

std::vector<int> candidates_of(const Step& step) {
  std::vector<int> out;
  for (const Point& p : step.points) out.push_back(p.candidate);
  return out;
}

}  // namespace

Search::Search(const std::vector<Item>& items, const Budget& budget, const Callbacks& callbacks,
               const std::vector<Trial>& known, const std::atomic<bool>& stop, int batch,
               double floor_ms)
    : items_(items),
      budget_(budget),
      calls_(callbacks),
      stop_(stop),
      batch_(std::max(1, batch)),
      forecast_(floor_ms),
      order_(search_order(items)) {
  for (const Trial& t : known) {
    if (t.point.candidate < 0 || t.point.candidate >= static_cast<int>(items.size())) continue;
    if (t.outcome == Outcome::skipped) continue;
    take(t, false);
  }
  reorder();
}

void Search::take(const Trial& trial, bool fresh) {
  out_.trials.push_back(trial);
  State& s = states_[trial.point.candidate];
  if (trial.outcome == Outcome::measured) {
    s.measured[trial.point.launch] = trial;
    double least = trial.ms;
    for (const auto& [launch, t] : s.measured) least = std::min(least, t.ms);
    forecast_.learn(trial.point.candidate, item(trial.point.candidate), least);
    finals_due_ = true;
    if (!out_.best || trial.ms < out_.best_ms) {
      out_.best = trial.point;
      out_.best_ms = trial.ms;
    }
  } else if (trial.point.launch == 0) {
    s.failed = true;
  } else {
    failed_points_.insert({trial.point.candidate, trial.point.launch});
  }
  if (fresh && calls_.record) calls_.record(trial);
}

void Search::cut(const std::string& why) {
  if (why_.empty()) why_ = why;
}

std::string Search::why_over() const {
  if (!why_.empty()) return why_;
  return why_built_out_.empty() ? "space exhausted" : why_built_out_;
}

// Whether a budget or the caller ends the search; notes why.
bool Search::ended() {
  if (!why_.empty()) return true;
  if (stop_.load()) {
    why_ = "interrupted";
  } else if (budget_.seconds > 0 && spent_ >= budget_.seconds) {
    why_ = fmt::format("budget of {:g} s", budget_.seconds);
  } else if (budget_.measurements > 0 && measurements_ >= budget_.measurements) {
    why_ = fmt::format("budget of {} measurements", budget_.measurements);
  }
  return !why_.empty();
}

// Whether no more candidates are built, though launches of those that are may still be swept.
bool Search::built_out() {
  if (budget_.seconds > 0 && spent_ >= building_share * budget_.seconds)
    why_built_out_ = fmt::format("budget of {:g} s", budget_.seconds);
  if (budget_.gives_up && built_ >= patience_floor && without_gain_ >= patience)
    why_built_out_ = fmt::format("no gain in {} candidates", without_gain_);
  return !why_built_out_.empty();
}

bool Search::done(int candidate) const {
  const auto it = states_.find(candidate);
  if (it == states_.end()) return false;
  return it->second.failed || it->second.late || it->second.measured.contains(0);
}

double Search::bar(const Outlook& outlook) const {
  if (!out_.best) return outlook.bar_ms;
  return outlook.bar_ms > 0 ? std::min(outlook.bar_ms, out_.best_ms) : out_.best_ms;
}

bool Search::hopeless(int candidate, double bar_ms) const {
  return budget_.gives_up && !item(candidate).proven && bar_ms > 0 &&
         forecast_.optimistic_ms(item(candidate)) >= bar_ms;
}

// Whether its build would end too late, had it to begin now or is it under way.
bool Search::late(int candidate, const Outlook& outlook) const {
  if (outlook.seconds_left <= 0) return false;
  const double spent = outlook.running ? outlook.running(candidate) : 0;
  return in_time * item(candidate).build_seconds - spent > outlook.seconds_left;
}

// Puts what is left in the order of what has been learned. The candidates that every search begins
// with keep their places.
void Search::reorder() {
  std::set<std::string> seen;
  const auto rest = std::find_if(order_.begin(), order_.end(), [&](int c) {
    const bool leads = item(c).needs_build && seen.insert(item(c).family).second;
    return item(c).needs_build && !leads && !item(c).proven;
  });
  std::stable_sort(rest, order_.end(), [&](int a, int b) {
    return forecast_.expected_ms(item(a)) < forecast_.expected_ms(item(b));
  });
}

// Also notes what ends the builds.
std::vector<int> Search::worth_building(const Outlook& outlook) {
  std::vector<int> out;
  if (ended() || built_out()) return out;
  if (out_.best && forecast_.at_limit(out_.best_ms)) {
    why_built_out_ = "the best is at the roofline";
    return out;
  }
  const double bar_ms = bar(outlook);
  hopeless_ = 0;
  for (const int c : order_) {
    if (!item(c).needs_build || done(c)) continue;
    if (budget_.builds > 0 && built_ + static_cast<int>(out.size()) >= budget_.builds) {
      if (out.empty()) why_built_out_ = fmt::format("budget of {} builds", budget_.builds);
      break;
    }
    if (hopeless(c, bar_ms)) {
      ++hopeless_;
      continue;
    }
    if (!late(c, outlook)) out.push_back(c);
  }
  return out;
}

Step Search::step_for(int candidate, double bar_ms) const {
  const Item& i = item(candidate);
  const bool tried = std::any_of(states_.begin(), states_.end(), [&](const auto& s) {
    return item(s.first).family == i.family && (s.second.failed || !s.second.measured.empty());
  });
  return {
      .round = round_of(i),
      .points = {{candidate, 0}},
      .first = !tried,
      .gain_ms = forecast_.gain_ms(i, bar_ms),
      .expected_ms = forecast_.expected_ms(i),
      .build_seconds = i.build_seconds,
      .measure_seconds = measurements_ > 0 ? measuring_ / measurements_ : measure_seconds_guess};
}

std::vector<Step> Search::to_build(const Outlook& outlook) {
  std::vector<Step> out;
  double bar_ms = bar(outlook);
  for (const int c : worth_building(outlook)) {
    out.push_back(step_for(c, bar_ms));
    const double expected = out.back().expected_ms;
    if (expected > 0) bar_ms = bar_ms > 0 ? std::min(bar_ms, expected) : expected;
  }
  return out;
}

std::optional<Step> Search::free_step(double bar_ms) const {
  Step step;
  for (const int c : order_) {
    if (item(c).needs_build || done(c) || static_cast<int>(step.points.size()) >= batch_) continue;
    if (step.points.empty())
      step = step_for(c, bar_ms);
    else
      step.points.push_back({c, 0});
  }
  return step.points.empty() ? std::nullopt : std::optional(std::move(step));
}

std::optional<Step> Search::build_step(const Outlook& outlook) {
  std::optional<Step> step;
  std::optional<Step> coming;
  for (Step& one : to_build(outlook)) {
    if (outlook.ready && !outlook.ready(one.points.front().candidate)) {
      if (!coming) coming = std::move(one);
      continue;
    }
    if (outlook.ready) one.build_seconds = 0;
    if (!step) {
      step = std::move(one);
    } else if (one.round == step->round || outlook.ready) {
      step->points.push_back(one.points.front());
      step->gain_ms = std::max(step->gain_ms, one.gain_ms);
      step->expected_ms = std::min(step->expected_ms, one.expected_ms);
      step->measure_seconds += one.measure_seconds;
    }
    if (static_cast<int>(step->points.size()) >= batch_) break;
  }
  if (!step && coming) coming->waiting = true;
  return step ? step : coming;
}

// Launches of the best candidate, or of all leaders.
std::optional<Step> Search::sweep_step(bool all, double bar_ms) const {
  Step step{.round = Round::sweep};
  for (const int c : sweepable()) {
    if (!all && (!out_.best || c != out_.best->candidate)) continue;
    const State& s = states_.at(c);
    if (s.failed) continue;
    for (int launch = 1; launch < item(c).launches; ++launch) {
      if (s.measured.contains(launch) || failed_points_.contains({c, launch})) continue;
      if (step.points.size() >= sweep_group) break;
      step.points.push_back({c, launch});
    }
    const double hoped = s.measured.at(0).ms;
    step.gain_ms =
        std::max(step.gain_ms, expected_improvement(bar_ms, hoped, hoped * sweep_deviation));
  }
  if (step.points.empty()) return std::nullopt;
  const double each = measurements_ > 0 ? measuring_ / measurements_ : measure_seconds_guess;
  step.measure_seconds = each * static_cast<double>(step.points.size());
  return step;
}

std::optional<Step> Search::next(const Outlook& outlook) {
  if (ended()) return std::nullopt;
  const double bar_ms = bar(outlook);
  if (auto step = free_step(bar_ms)) return step;
  std::optional<Step> build = build_step(outlook);
  std::optional<Step> sweep = sweep_step(!build, bar_ms);
  if (!build || !sweep) return build ? build : sweep;
  if (build->waiting) return sweep;
  const auto rate = [](const Step& s) {
    return s.gain_ms / std::max(at_once, s.build_seconds + s.measure_seconds);
  };
  return rate(*sweep) > rate(*build) ? sweep : build;
}

void Search::count(Clock::time_point begin) {
  spent_ += std::chrono::duration<double>(Clock::now() - begin).count();
}

void Search::advance(const Step& step, double seconds) {
  const auto begin = Clock::now();
  if (step.round == Round::sweep) {
    std::vector<Point> points;
    for (const Point& p : step.points) {
      if (usable(p.candidate)) points.push_back(p);
    }
    measure(std::move(points), Round::sweep);
  } else {
    const std::vector<int> batch = candidates_of(step);
    const double own = budget_.seconds > 0 ? building_share * budget_.seconds - spent_ : 0;
    double limit = budget_.seconds > 0 ? std::max(own, at_once) : 0;
    if (seconds > 0) limit = limit > 0 ? std::min(limit, seconds) : seconds;
    std::vector<Trial> built;
    if (calls_.build) built = calls_.build(batch, limit);
    tell(step.round, built_ + static_cast<int>(batch.size()));
    judge(batch, built);
    reorder();
  }
  count(begin);
}

void Search::judge(const std::vector<int>& batch, const std::vector<Trial>& built) {
  std::vector<Point> right;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const int c = batch[i];
    if (i < built.size() && built[i].outcome == Outcome::skipped) {
      states_[c].late = true;
      continue;
    }
    if (item(c).needs_build) ++built_;
    if (i < built.size() && built[i].outcome != Outcome::measured) {
      Trial t = built[i];
      t.point = {c, 0};
      take(t, true);
      ++without_gain_;
      continue;
    }
    states_[c].usable = true;
    if (stop_.load()) continue;
    if (verified(c)) right.push_back({c, 0});
  }
  measure(right, right.empty() ? Round::free : round_of(item(right.front().candidate)));
}

bool Search::verified(int candidate) {
  Trial t = calls_.verify(candidate);
  if (t.outcome == Outcome::measured) return true;
  t.point = {candidate, 0};
  take(t, true);
  ++without_gain_;
  return false;
}

void Search::measure(std::vector<Point> points, Round round) {
  if (budget_.measurements > 0) {
    const auto left = static_cast<std::size_t>(std::max(0, budget_.measurements - measurements_));
    if (points.size() > left) points.resize(left);
  }
  if (points.empty()) return;
  measurements_ += static_cast<int>(points.size());
  const auto begin = Clock::now();
  std::vector<Trial> trials = calls_.measure(points, round);
  measuring_ += std::chrono::duration<double>(Clock::now() - begin).count();
  for (std::size_t i = 0; i < points.size() && i < trials.size(); ++i) {
    trials[i].point = points[i];
    const bool gained = trials[i].outcome == Outcome::measured &&
                        (!out_.best || trials[i].ms < out_.best_ms * gain);
    take(trials[i], true);
    without_gain_ = gained ? 0 : without_gain_ + 1;
  }
  tell(round, measurements_);
}

// A candidate known from an earlier run has no library yet in this one.
bool Search::usable(int candidate) {
  State& s = states_[candidate];
  if (s.usable) return true;
  if (item(candidate).needs_build && calls_.build) {
    const std::vector<Trial> built = calls_.build({candidate}, 0);
    if (!built.empty() && built[0].outcome != Outcome::measured) {
      Trial t = built[0];
      t.point = {candidate, 0};
      take(t, true);
      return false;
    }
  }
  s.usable = true;
  return true;
}

// Candidates with a measured default launch, fastest first.
std::vector<int> Search::ranked() const {
  std::vector<std::pair<double, int>> by_time;
  for (const auto& [c, s] : states_) {
    if (!s.failed && s.measured.contains(0)) by_time.emplace_back(s.measured.at(0).ms, c);
  }
  std::sort(by_time.begin(), by_time.end());
  std::vector<int> out;
  for (const auto& [ms, c] : by_time) out.push_back(c);
  return out;
}

// The leaders among the candidates that have several launches, and the best of each family: a
// default launch far off (one slice of a long K) says little of what its candidate can do, so
// candidates with one launch set no bar here.
std::vector<int> Search::sweepable() const {
  std::vector<int> out;
  std::set<std::string> families;
  double best_ms = 0;
  for (const int c : ranked()) {
    if (item(c).launches < 2) continue;
    const double ms = states_.at(c).measured.at(0).ms;
    if (best_ms == 0) best_ms = ms;
    const bool leads = static_cast<int>(out.size()) < leaders_swept && ms <= best_ms * sweep_reach;
    if (families.insert(item(c).family).second || leads) out.push_back(c);
  }
  return out;
}

void Search::tell(Round round, int done) const {
  if (!calls_.progress) return;
  const bool builds = round == Round::quick || round == Round::slow;
  calls_.progress(std::string(name_of(round)), done,
                  builds ? static_cast<int>(items_.size()) : budget_.measurements, out_.best_ms);
}

}  // namespace tessera::tune
