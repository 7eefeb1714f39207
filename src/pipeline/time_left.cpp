#include "pipeline/time_left.h"

#include <algorithm>
#include <limits>

namespace tessera::pipeline {
namespace {

using Clock = std::chrono::steady_clock;

Clock::time_point end_of(const Options& options) {
  return options.begun + std::chrono::duration_cast<Clock::duration>(
                             std::chrono::duration<double>(options.total_seconds));
}

}  // namespace

double seconds_left(const Options& options) {
  if (options.total_seconds <= 0) return std::numeric_limits<double>::infinity();
  return std::max(0.0, std::chrono::duration<double>(end_of(options) - Clock::now()).count());
}

Options within_total(Options options) {
  if (options.total_seconds <= 0) return options;
  options.seconds = options.seconds > 0 ? std::min(options.seconds, options.total_seconds)
                                        : options.total_seconds;
  options.peers = {"eager"};
  options.ablation = false;
  options.resizes = options.resizes.value_or(false);
  return options;
}

bool says_time_is_up(const Diagnostic& d) {
  return d.code == "TS0460";
}

Deadline::Deadline(bridge::Peer& peer, const Options& options) : peer_(peer) {
  if (options.total_seconds > 0) peer_.deadline = end_of(options);
}

Deadline::~Deadline() {
  peer_.deadline.reset();
}

Json compile_limit(const Options& options) {
  constexpr double share = 0.4;
  if (options.total_seconds <= 0) return nullptr;
  return {{"seconds", share * seconds_left(options)}, {"ends", true}};
}

double reserved_seconds(const Options& options, double eager_ms) {
  constexpr double least = 3, share = 0.1, calls = 100, most = 0.6;
  const double left = seconds_left(options);
  return std::min(most * left, least + share * left + calls * eager_ms / 1e3);
}

double left_for_search(const Options& options, double eager_ms) {
  if (options.total_seconds <= 0) return std::numeric_limits<double>::infinity();
  return seconds_left(options) - reserved_seconds(options, eager_ms);
}

double search_seconds(const Session& s) {
  if (s.options.seconds <= 0) return 0;
  const double left = std::min(s.options.seconds - s.options.spent,
                               left_for_search(s.options, s.baseline.eager_ms));
  return std::max(1.0, left - s.baseline.kept_seconds);
}

}  // namespace tessera::pipeline
