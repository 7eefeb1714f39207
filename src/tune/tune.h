// Search over a candidate list: what to build, what to measure, when to stop. Pure: building and
// measuring are callbacks, so it is tested without a compiler or a device.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "diag/result.h"

namespace tessera::tune {

struct Budget {
  double seconds = 0;    // 0: no limit
  int builds = 0;        // compile-time candidates at most; 0: no limit
  int measurements = 0;  // launches measured at most; 0: no limit
  bool gives_up = true;  // leaves out what is not expected to win, and ends where many gain nothing
};
/// `quick`, `default` and `max` of the command line, for one pattern.
Result<Budget> budget_for(const std::string& effort);

/// One point of the space as the search sees it: which candidate, which of its launches.
struct Point {
  int candidate = 0;
  int launch = 0;
  friend bool operator==(const Point&, const Point&) = default;
};

struct Item {
  double predicted_ms = 0;  // 0: unknown
  int launches = 1;
  bool needs_build = true;
  bool proven = false;  // won before, or for a relative
  std::string
      family;  // realizer name: the search keeps at least the best prediction of each family
  double build_seconds = 0;  // a compiler's, as far as it is known; 0 for what lies in the cache
};

/// What a step of a search costs is of another order in each.
enum class Round : uint8_t {
  free,    // candidates that need no compiler
  quick,   // built in seconds
  slow,    // built in tens of seconds
  sweep,   // further launches of what is built
  finals,  // the leaders again, side by side
};
std::string_view name_of(Round round);
/// Seconds: what takes a compiler longer comes in the slow round.
inline constexpr double slow_build = 10;
/// Free, quick or slow.
Round round_of(const Item& item);

enum class Outcome : uint8_t {
  measured,
  build_failed,
  wrong_result,
  crashed,
  timed_out,
  unsupported,
  skipped
};
std::string_view name_of(Outcome outcome);
std::optional<Outcome> outcome_of(std::string_view name);

struct Trial {
  Point point;
  Outcome outcome = Outcome::skipped;
  double ms = 0;
  double ci95 = 0;
  std::string reason;
  Json detail = Json::object();
  /// What finalists are ordered by: the geometric mean of `ms`, on a rested clock and cold caches,
  /// and the time a call back to back ("sustained_ms" in `detail`, where all of one final have it).
  /// At the power limit the order is another: what moves less holds a higher clock.
  [[nodiscard]] double judged_ms() const;
};

struct Callbacks {
  /// Builds these candidates (in parallel); entry i says whether candidates[i] is usable, with the
  /// outcome when not: skipped for what is not ready in `seconds` (0: no limit) while another is.
  std::function<std::vector<Trial>(const std::vector<int>& candidates, double seconds)> build;
  /// Verifies a candidate with its default launch; measured means right.
  std::function<Trial(int candidate)> verify;
  /// Measures points beside an anchor; one Trial a point.
  std::function<std::vector<Trial>(const std::vector<Point>& points, Round round)> measure;
  /// Told after every step; may be empty. Stages: "build", "measure", "sweep", "finals".
  std::function<void(const std::string& stage, int done, int total, double best_ms)> progress;
  /// Told of every new trial as it is made, so that an interrupted search can be resumed; may be
  /// empty.
  std::function<void(const Trial& trial)> record;
};

struct Outcomes {
  std::vector<Trial> trials;  // everything tried, in order
  std::optional<Point> best;
  double best_ms = 0;
  std::string stopped_because;  // "space exhausted", "budget of 60 s", "interrupted", "no gain in
                                // 12 candidates"
};

/// The order in which a search takes candidates: those without a build; the proven ones; the best
/// prediction of each family, families by that prediction (unknown predictions keep their place in
/// the list); then all others by prediction.
std::vector<int> search_order(const std::vector<Item>& items);

/// A whole search (search.h), step after step until nothing is left to do or a budget is spent, and
/// its finals. `known` holds trials of an earlier, interrupted run: they are not repeated. `stop`
/// ends it at the next step with the best so far.
Outcomes search(const std::vector<Item>& items, const Budget& budget, const Callbacks& callbacks,
                const std::vector<Trial>& known, const std::atomic<bool>& stop, int batch);

}  // namespace tessera::tune
