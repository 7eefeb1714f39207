#include <algorithm>
#include <chrono>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <set>

#include "tune/tune.h"

namespace tessera::tune {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int patience_floor = 32;    // built candidates before "no gain" may end a search
constexpr int patience = 16;          // candidates in a row without gain
constexpr double gain = 0.995;        // faster by half a percent counts as a gain
constexpr int leaders_swept = 4;      // candidates whose run-time launches are swept
constexpr double sweep_reach = 1.15;  // a leader is within this factor of the best
constexpr int sweep_group = 8;        // points measured side by side
constexpr int finalists = 6;
constexpr int launches_of_a_finalist = 2;
constexpr double sibling_reach = 1.03;  // further launches of the leader that come with it
constexpr double building_share = 0.8;  // of the budget of seconds; the rest is for the sweep

class Search {
 public:
  Search(const std::vector<Item>& items, const Budget& budget, const Callbacks& callbacks,
         const std::vector<Trial>& known, const std::atomic<bool>& stop, int batch)
      : items_(items), budget_(budget), calls_(callbacks), stop_(stop), batch_(std::max(1, batch)) {
    for (const Trial& t : known) {
      if (t.point.candidate < 0 || t.point.candidate >= static_cast<int>(items.size())) continue;
      if (t.outcome == Outcome::skipped) continue;
      take(t, false);
    }
  }

  Outcomes run() {
    candidates();
    if (!ended()) sweep();
    finals();
    if (out_.stopped_because.empty()) out_.stopped_because = "space exhausted";
    return std::move(out_);
  }

 private:
  struct State {
    bool failed = false;
    bool usable = false;            // built in this run (or needs no build)
    std::map<int, Trial> measured;  // by launch
  };

  void take(const Trial& trial, bool fresh) {
    out_.trials.push_back(trial);
    State& s = states_[trial.point.candidate];
    if (trial.outcome == Outcome::measured) {
      s.measured[trial.point.launch] = trial;
      better(trial);
    } else if (trial.point.launch == 0) {
      s.failed = true;
    } else {
      failed_points_.insert({trial.point.candidate, trial.point.launch});
    }
    if (fresh && calls_.record) calls_.record(trial);
  }

  bool better(const Trial& t) {
    const bool gained = !out_.best || t.ms < out_.best_ms * gain;
    if (!out_.best || t.ms < out_.best_ms) {
      out_.best = t.point;
      out_.best_ms = t.ms;
    }
    return gained;
  }

  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(Clock::now() - begin_).count();
  }

  // Whether a budget or the caller ends the search; notes why.
  bool ended() {
    if (!out_.stopped_because.empty()) return true;
    if (stop_.load()) {
      out_.stopped_because = "interrupted";
    } else if (budget_.seconds > 0 && seconds() >= budget_.seconds) {
      out_.stopped_because = fmt::format("budget of {:g} s", budget_.seconds);
    } else if (budget_.measurements > 0 && measurements_ >= budget_.measurements) {
      out_.stopped_because = fmt::format("budget of {} measurements", budget_.measurements);
    }
    return !out_.stopped_because.empty();
  }

  // Why no more candidates are built, though launches of those that are may still be swept; empty
  // while there is no reason.
  [[nodiscard]] std::string built_out() const {
    if (budget_.seconds > 0 && seconds() >= building_share * budget_.seconds)
      return fmt::format("budget of {:g} s", budget_.seconds);
    if (built_ >= patience_floor && without_gain_ >= patience)
      return fmt::format("no gain in {} candidates", without_gain_);
    return "";
  }

  bool done(int candidate) const {
    const auto it = states_.find(candidate);
    return it != states_.end() && (it->second.failed || it->second.measured.contains(0));
  }

  // The next candidates to build; cuts at the budget of builds.
  std::vector<int> next_batch() {
    std::vector<int> batch;
    while (next_ < order_.size() && static_cast<int>(batch.size()) < batch_) {
      const int c = order_[next_];
      if (done(c)) {
        ++next_;
        continue;
      }
      const bool builds = items_[static_cast<std::size_t>(c)].needs_build;
      if (builds && budget_.builds > 0 && planned_builds_ >= budget_.builds) {
        build_budget_spent_ = true;
        ++next_;
        continue;
      }
      planned_builds_ += builds ? 1 : 0;
      batch.push_back(c);
      ++next_;
    }
    return batch;
  }

  // What next_batch() will name to be built, as far as the budget of builds goes.
  [[nodiscard]] std::vector<int> planned() const {
    std::vector<int> out;
    for (const int c : order_) {
      if (budget_.builds > 0 && static_cast<int>(out.size()) >= budget_.builds) break;
      if (items_[static_cast<std::size_t>(c)].needs_build && !done(c)) out.push_back(c);
    }
    return out;
  }

  // Waits no longer for a batch than candidates may be built at all.
  std::vector<Trial> build(const std::vector<int>& batch) const {
    if (!calls_.build) return {};
    constexpr double at_once = 0.001;  // seconds
    const double left = building_share * budget_.seconds - seconds();
    return calls_.build(batch, budget_.seconds > 0 ? std::max(left, at_once) : 0);
  }

  void candidates() {
    order_ = search_order(items_);
    if (calls_.ahead) calls_.ahead(planned());
    std::vector<int> batch = next_batch();
    while (!batch.empty()) {
      if (ended()) break;
      built_out_ = built_out();
      if (!built_out_.empty()) break;
      const std::vector<Trial> built = build(batch);
      tell("build", built_ + static_cast<int>(batch.size()));
      judge(batch, built);
      if (reorder() && calls_.ahead) calls_.ahead(planned());
      batch = next_batch();
    }
    if (calls_.ahead) calls_.ahead({});
    if (batch.empty() && build_budget_spent_ && out_.stopped_because.empty()) {
      built_out_ = fmt::format("budget of {} builds", budget_.builds);
    }
  }

  // How many times slower the family's best relation of time to prediction is: predictions of one
  // family are off together (a reduction that costs more than thought, a scheduler's overhead).
  [[nodiscard]] std::map<std::string, double> measured_over_predicted() const {
    std::map<std::string, double> out;
    for (const auto& [c, s] : states_) {
      const Item& item = items_[static_cast<std::size_t>(c)];
      if (s.failed || item.predicted_ms <= 0) continue;
      for (const auto& [launch, t] : s.measured) {
        const double ratio = t.ms / item.predicted_ms;
        const auto [at, fresh] = out.emplace(item.family, ratio);
        if (!fresh) at->second = std::min(at->second, ratio);
      }
    }
    return out;
  }

  // Puts what is left in the order of what has been learned; whether that changed it. The
  // candidates that every search begins with keep their places.
  bool reorder() {
    std::set<std::string> seen;
    std::size_t begin = 0;
    for (; begin < order_.size(); ++begin) {
      const Item& item = items_[static_cast<std::size_t>(order_[begin])];
      const bool leads = item.needs_build && seen.insert(item.family).second;
      if (item.needs_build && !leads && !item.proven) break;
    }
    begin = std::max(begin, next_);
    const auto factors = measured_over_predicted();
    const auto promise = [&](int c) {
      const Item& item = items_[static_cast<std::size_t>(c)];
      const auto at = factors.find(item.family);
      return item.predicted_ms * (at == factors.end() ? 1.0 : at->second);
    };
    if (begin >= order_.size()) return false;
    const std::vector<int> before = order_;
    std::stable_sort(order_.begin() + static_cast<std::ptrdiff_t>(begin), order_.end(),
                     [&](int a, int b) { return promise(a) < promise(b); });
    return order_ != before;
  }

  void judge(const std::vector<int>& batch, const std::vector<Trial>& built) {
    std::vector<Point> right;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const int c = batch[i];
      if (i < built.size() && built[i].outcome == Outcome::skipped) continue;  // not ready
      if (items_[static_cast<std::size_t>(c)].needs_build) ++built_;
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
    measure(right, "measure");
  }

  bool verified(int candidate) {
    Trial t = calls_.verify(candidate);
    if (t.outcome == Outcome::measured) return true;
    t.point = {candidate, 0};
    take(t, true);
    ++without_gain_;
    return false;
  }

  void measure(std::vector<Point> points, const std::string& stage) {
    if (budget_.measurements > 0) {
      const auto left = static_cast<std::size_t>(std::max(0, budget_.measurements - measurements_));
      if (points.size() > left) points.resize(left);
    }
    if (points.empty()) return;
    measurements_ += static_cast<int>(points.size());
    std::vector<Trial> trials = calls_.measure(points);
    for (std::size_t i = 0; i < points.size() && i < trials.size(); ++i) {
      trials[i].point = points[i];
      const bool gained = trials[i].outcome == Outcome::measured &&
                          (!out_.best || trials[i].ms < out_.best_ms * gain);
      take(trials[i], true);
      without_gain_ = gained ? 0 : without_gain_ + 1;
    }
    tell(stage, measurements_);
  }

  // Candidates with a measured default launch, fastest first.
  std::vector<int> ranked() const {
    std::vector<std::pair<double, int>> by_time;
    for (const auto& [c, s] : states_) {
      if (!s.failed && s.measured.contains(0)) by_time.emplace_back(s.measured.at(0).ms, c);
    }
    std::sort(by_time.begin(), by_time.end());
    std::vector<int> out;
    for (const auto& [ms, c] : by_time) out.push_back(c);
    return out;
  }

  // A candidate known from an earlier run has no library yet in this one.
  bool usable(int candidate) {
    State& s = states_[candidate];
    if (s.usable) return true;
    if (items_[static_cast<std::size_t>(candidate)].needs_build) {
      const std::vector<Trial> built = build({candidate});
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

  // The leaders among the candidates that have several launches, and the best of each family: a
  // default launch far off (one slice of a long K) says little of what its candidate can do, so
  // candidates with one launch set no bar here.
  std::vector<int> sweepable() const {
    std::vector<int> out;
    std::set<std::string> families;
    double best_ms = 0;
    for (const int c : ranked()) {
      const Item& item = items_[static_cast<std::size_t>(c)];
      if (item.launches < 2) continue;
      const double ms = states_.at(c).measured.at(0).ms;
      if (best_ms == 0) best_ms = ms;
      const bool leads =
          static_cast<int>(out.size()) < leaders_swept && ms <= best_ms * sweep_reach;
      if (families.insert(item.family).second || leads) out.push_back(c);
    }
    return out;
  }

  void sweep() {
    std::vector<Point> points;
    for (const int c : sweepable()) {
      const Item& item = items_[static_cast<std::size_t>(c)];
      for (int launch = 1; launch < item.launches; ++launch) {
        if (states_[c].measured.contains(launch) || failed_points_.contains({c, launch})) continue;
        if (usable(c)) points.push_back({c, launch});
      }
    }
    for (std::size_t i = 0; i < points.size() && !ended(); i += sweep_group) {
      const std::size_t end = std::min(points.size(), i + sweep_group);
      measure({points.begin() + static_cast<std::ptrdiff_t>(i),
               points.begin() + static_cast<std::ptrdiff_t>(end)},
              "sweep");
    }
  }

  std::vector<Point> final_points() {
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
      const bool first = families.insert(items_[static_cast<std::size_t>(c)].family).second;
      const bool room = places < finalists && launches[c] < launches_of_a_finalist;
      // Launches of one kernel differ little on a rested clock and by several percent under load.
      const bool sibling =
          !out.empty() && c == out.front().candidate && t.ms <= sibling_reach * all.front().ms;
      if ((!first && !room && !sibling) || !usable(c)) continue;
      if (room || first) ++places;
      ++launches[c];
      out.push_back(t.point);
    }
    return out;
  }

  // Side by side, in one measurement: what was measured minutes apart is not comparable to a
  // percent. Also done when the search was stopped, as long as it costs no budget of measurements:
  // the best must be known.
  void finals() {
    const std::vector<Point> points = final_points();
    if (out_.stopped_because.empty() && !built_out_.empty()) out_.stopped_because = built_out_;
    if (points.empty() || stop_.load()) return;
    std::vector<Trial> trials = calls_.measure(points);
    std::optional<Trial> best;
    for (std::size_t i = 0; i < points.size() && i < trials.size(); ++i) {
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
    tell("finals", measurements_);
  }

  void tell(const std::string& stage, int done) const {
    if (!calls_.progress) return;
    const int total = stage == "build" ? static_cast<int>(items_.size()) : budget_.measurements;
    calls_.progress(stage, done, total, out_.best_ms);
  }

  const std::vector<Item>& items_;
  const Budget budget_;
  const Callbacks& calls_;
  const std::atomic<bool>& stop_;
  const int batch_;
  const Clock::time_point begin_ = Clock::now();

  Outcomes out_;
  std::map<int, State> states_;
  std::set<std::pair<int, int>> failed_points_;
  std::vector<int> order_;
  std::size_t next_ = 0;
  int planned_builds_ = 0;
  int built_ = 0;
  int measurements_ = 0;
  int without_gain_ = 0;
  bool build_budget_spent_ = false;
  std::string built_out_;
};

}  // namespace

double Trial::judged_ms() const {
  const double sustained = detail.value("sustained_ms", 0.0);
  return sustained > 0 ? std::sqrt(ms * sustained) : ms;
}

std::vector<int> search_order(const std::vector<Item>& items) {
  std::vector<int> order(items.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  const auto item = [&](int i) -> const Item& { return items[static_cast<std::size_t>(i)]; };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    const Item& x = item(a);
    const Item& y = item(b);
    if (x.needs_build != y.needs_build) return !x.needs_build;
    if (x.proven != y.proven) return x.proven;
    // Only two known predictions are comparable across families; unknown ones come first, in their
    // given order.
    return x.predicted_ms < y.predicted_ms;
  });
  std::set<std::string> seen;
  std::vector<int> first;
  std::vector<int> rest;
  for (const int i : order) {
    const bool free = !item(i).needs_build;
    const bool leads = !free && seen.insert(item(i).family).second;
    (free || item(i).proven || leads ? first : rest).push_back(i);
  }
  first.insert(first.end(), rest.begin(), rest.end());
  return first;
}

Outcomes search(const std::vector<Item>& items, const Budget& budget, const Callbacks& callbacks,
                const std::vector<Trial>& known, const std::atomic<bool>& stop, int batch) {
  return Search(items, budget, callbacks, known, stop, batch).run();
}

}  // namespace tessera::tune
