// The search over one pattern's candidates as a journey that is advanced step by step, so that
// several can take turns. Pure: building and measuring are callbacks.
//
// Candidates come without a build first, then by falling promise: the prediction times how far its
// family's have been off (forecast.h). What cannot be the best even so is not built, nor anything
// once the best is at the roofline. Each is built, verified, measured at its default launch;
// further launches of the leaders are swept; finals time the leaders and the best of each family
// side by side, and those times decide. By default 32 built candidates are looked at before lack of
// gain ends the builds.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tune/forecast.h"
#include "tune/tune.h"

namespace tessera::tune {

/// What a search would do next.
struct Step {
  Round round = Round::free;
  std::vector<Point> points;  // to be built where needed, verified, and measured
  bool first = false;         // of a family of which nothing was tried
  double gain_ms = 0;         // expected below the best so far, or the bar; 0 for finals
  double expected_ms = 0;     // of the best of its candidates; 0: unknown, or a sweep
  double build_seconds = 0;   // of one compiler; 0 where all is built
  double measure_seconds = 0;
  /// Its builds have not ended: there is nothing to do yet.
  bool waiting = false;
};

/// What a search is told of the world when it is asked for its next step.
struct Outlook {
  /// The ms that the pattern's ops take now, whoever computes them: nothing slower is of use. 0:
  /// unknown.
  double bar_ms = 0;
  /// Of the time for all searches; builds that cannot end in it are not begun. 0: no limit.
  double seconds_left = 0;
  /// Whether a candidate's build has ended; empty where steps build what they measure.
  std::function<bool(int candidate)> ready;
  /// For how many seconds a candidate's build has been under way; may be empty.
  std::function<double(int candidate)> running;
};

class Search {
 public:
  /// `items`, `callbacks` and `stop` outlive it. `batch`: candidates of a step. `floor_ms`: the
  /// roofline's least time; 0: unknown.
  Search(const std::vector<Item>& items, const Budget& budget, const Callbacks& callbacks,
         const std::vector<Trial>& known, const std::atomic<bool>& stop, int batch,
         double floor_ms = 0);

  /// Nothing when only finals are left, or nothing at all.
  [[nodiscard]] std::optional<Step> next(const Outlook& outlook);
  /// What is still worth a build, in the order in which it would be asked for; compilers may run
  /// ahead of next() with it. What each gains is counted on top of those before it, each at its
  /// expected time.
  [[nodiscard]] std::vector<Step> to_build(const Outlook& outlook);
  /// Does a step; waits at most `seconds` for its compilers (0: no limit).
  void advance(const Step& step, double seconds);

  /// The leaders side by side. Their times decide, and their trials have {"final": true} in
  /// `detail`; a point whose times differ by more than a factor of two is measured again, and
  /// {"unreliable": true} where that does not settle it.
  void finals();
  /// Whether something was measured that finals have not judged.
  [[nodiscard]] bool finals_due() const { return finals_due_; }
  [[nodiscard]] double finals_seconds() const;

  [[nodiscard]] const Outcomes& outcomes() const { return out_; }
  /// Seconds of all steps and finals so far.
  [[nodiscard]] double seconds() const { return spent_; }
  /// How many candidates were left unbuilt because they cannot win by the model.
  [[nodiscard]] int hopeless() const { return hopeless_; }
  /// Why it ends, when it does: says "space exhausted" while nothing else is known.
  [[nodiscard]] std::string why_over() const;
  /// Takes note of what cut it from outside: "budget of 30 s", "interrupted".
  void cut(const std::string& why);

 private:
  using Clock = std::chrono::steady_clock;
  struct State {
    bool failed = false;
    bool late = false;              // its build was cut
    bool usable = false;            // built in this run (or needs no build)
    std::map<int, Trial> measured;  // by launch
  };

  [[nodiscard]] const Item& item(int candidate) const {
    return items_[static_cast<std::size_t>(candidate)];
  }
  void take(const Trial& trial, bool fresh);
  [[nodiscard]] bool ended();
  [[nodiscard]] bool built_out();
  [[nodiscard]] bool done(int candidate) const;
  [[nodiscard]] double bar(const Outlook& outlook) const;
  [[nodiscard]] bool hopeless(int candidate, double bar_ms) const;
  [[nodiscard]] bool late(int candidate, const Outlook& outlook) const;
  [[nodiscard]] std::vector<int> worth_building(const Outlook& outlook);
  [[nodiscard]] Step step_for(int candidate, double bar_ms) const;
  [[nodiscard]] std::optional<Step> free_step(double bar_ms) const;
  [[nodiscard]] std::optional<Step> build_step(const Outlook& outlook);
  [[nodiscard]] std::optional<Step> sweep_step(bool all, double bar_ms) const;
  [[nodiscard]] std::vector<int> ranked() const;
  [[nodiscard]] std::vector<int> sweepable() const;
  [[nodiscard]] std::vector<Point> final_points();
  void reorder();
  void judge(const std::vector<int>& batch, const std::vector<Trial>& built);
  [[nodiscard]] bool verified(int candidate);
  void measure(std::vector<Point> points, Round round);
  [[nodiscard]] bool usable(int candidate);
  [[nodiscard]] std::vector<Trial> measure_finals(const std::vector<Point>& points);
  void tell(Round round, int done) const;
  void count(Clock::time_point begin);

  const std::vector<Item>& items_;
  const Budget budget_;
  const Callbacks& calls_;
  const std::atomic<bool>& stop_;
  const int batch_;
  Forecast forecast_;

  Outcomes out_;
  std::map<int, State> states_;
  std::set<std::pair<int, int>> failed_points_;
  std::vector<int> order_;
  double spent_ = 0;
  double measuring_ = 0;  // seconds of measurements, for `measurements_` points
  int built_ = 0;
  int measurements_ = 0;
  int without_gain_ = 0;
  int hopeless_ = 0;
  bool finals_due_ = false;
  std::string why_;
  std::string why_built_out_;
};

}  // namespace tessera::tune
