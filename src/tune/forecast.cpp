#include "tune/forecast.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tessera::tune {
namespace {

/// Of the logarithm, before anything of a family was measured: a factor of 1.4 either way.
constexpr double prior_deviation = 0.35;
/// Kernels of which only the roofline is known are expected a quarter above it.
constexpr double above_roofline = 0.22;
constexpr double least_deviation = 0.04;
constexpr double reached = 1.02;
constexpr double impossible = 0.9;

}  // namespace

double expected_improvement(double bar, double mean, double deviation) {
  if (deviation <= 0) return std::max(0.0, bar - mean);
  const double z = (bar - mean) / deviation;
  const double density = std::exp(-0.5 * z * z) / std::sqrt(2 * std::numbers::pi);
  const double share = 0.5 * std::erfc(-z / std::numbers::sqrt2);
  return std::max(0.0, (bar - mean) * share + deviation * density);
}

double Forecast::base_ms(const Item& item) const {
  return item.predicted_ms > 0 ? item.predicted_ms : floor_ms_;
}

void Forecast::learn(int candidate, const Item& item, double ms) {
  const double base = base_ms(item);
  if (base > 0 && ms > 0) ratios_[item.family][candidate] = std::log(ms / base);
}

Forecast::Relation Forecast::relation_of(const Item& item) const {
  const auto at = ratios_.find(item.family);
  if (at == ratios_.end())
    return {.mean = item.predicted_ms > 0 ? 0 : above_roofline, .deviation = prior_deviation};
  const auto n = static_cast<double>(at->second.size());
  double mean = 0;
  for (const auto& [c, ratio] : at->second) mean += ratio / n;
  // The prior counts as one observation of the deviation.
  double squares = prior_deviation * prior_deviation;
  for (const auto& [c, ratio] : at->second) squares += (ratio - mean) * (ratio - mean);
  return {.mean = mean, .deviation = std::max(least_deviation, std::sqrt(squares / n))};
}

double Forecast::expected_ms(const Item& item) const {
  return base_ms(item) * std::exp(relation_of(item).mean);
}

double Forecast::optimistic_ms(const Item& item) const {
  const Relation r = relation_of(item);
  return base_ms(item) * std::exp(r.mean - 2 * r.deviation);
}

double Forecast::gain_ms(const Item& item, double bar_ms) const {
  const double expected = expected_ms(item);
  if (expected <= 0) return bar_ms;
  return expected_improvement(bar_ms, expected, expected * relation_of(item).deviation);
}

bool Forecast::at_limit(double ms) const {
  return floor_ms_ > 0 && ms > 0 && ms <= reached * floor_ms_ && ms >= impossible * floor_ms_;
}

}  // namespace tessera::tune
