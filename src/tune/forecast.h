// What a candidate's measured time may be, before it is built: its prediction, corrected by how far
// the predictions of its family have been off.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tune/tune.h"

namespace tessera::tune {

/// The logarithm of time over prediction is taken for normal, one mean and deviation a family. A
/// candidate without a prediction is predicted at the roofline, which is never reached.
class Forecast {
 public:
  /// `floor_ms`: the roofline's least time of the pattern; 0: unknown.
  explicit Forecast(double floor_ms) : floor_ms_(floor_ms) {}

  /// The best measured time of a candidate; replaces what was learned of it before.
  void learn(int candidate, const Item& item, double ms);

  /// The time to be expected; 0 when nothing is known of it.
  [[nodiscard]] double expected_ms(const Item& item) const;
  /// What it can be at best: two deviations below the expected. 0 when nothing is known of it.
  [[nodiscard]] double optimistic_ms(const Item& item) const;
  /// By how much the time is expected to come below `bar_ms`: E[max(0, bar - X)] of X normal about
  /// the expected time. All of `bar_ms` when nothing is known of it.
  [[nodiscard]] double gain_ms(const Item& item, double bar_ms) const;
  /// Whether a best of `ms` is at the roofline, so that nothing better is to be found. A time well
  /// below shows that the roofline is wrong (a host's caches), and says nothing.
  [[nodiscard]] bool at_limit(double ms) const;

 private:
  struct Relation {
    double mean = 0;
    double deviation = 0;
  };
  [[nodiscard]] Relation relation_of(const Item& item) const;
  [[nodiscard]] double base_ms(const Item& item) const;

  double floor_ms_;
  std::map<std::string, std::map<int, double>> ratios_;  // family -> candidate -> log(ms / base)
};

/// E[max(0, bar - X)] of X normal with this mean and deviation.
double expected_improvement(double bar, double mean, double deviation);

}  // namespace tessera::tune
