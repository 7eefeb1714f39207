// Which way to run the module is handed over: PyTorch's own, or a plan's kernels.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/elsewhere.h"
#include "base/json.h"

namespace tessera::pipeline {

/// One way to run the module, as the tracer timed it (docs/protocol.md, `settle`): a call with a
/// synchronize around it, host time included, and calls back to back; milliseconds.
struct Way {
  std::string runner;       // kernels, eager or inductor
  std::optional<int> plan;  // which of the plans that were sent; none for PyTorch's own
  std::string leftover;     // who runs what no kernel covers
  double call_ms = 0;
  double call_ci95 = 0;
  double back_ms = 0;
  double back_ci95 = 0;
  double device_ms = 0;    // that a call keeps the device busy for; 0: not known
  int64_t peak_bytes = 0;  // that a call allocates
  double seconds = 0;      // to compile and warm
  std::string reason;      // why it cannot run; its times mean nothing then
  bool no_time = false;    // that there was no time to compile it
};
std::vector<Way> ways_from(const Json& rows);
/// "eager", "kernels with inductor for the rest".
std::string name_of(const Way& way);

/// Half of an interval over both measures, relative; 0 of one that cannot run.
double noise_of(const Way& way);
/// Whether one of them is ahead of all others that run, in both measures: by more than both
/// intervals and what moments of a machine may differ by (`most_noise`).
bool one_is_surely_first(const std::vector<Way>& ways);

struct Decision {
  int way = -1;     // -1: none can run
  std::string why;  // for people: the figures that decided
};

/// The way that is handed over. Time comes first, memory among those that are fast enough. A way is
/// fast enough where it is at `least` or more of PyTorch's better way in each measure, or at
/// `promised` with a gain of `clear_win` in the geometric mean, where half of the clock's noise is
/// granted in the one and asked for in the other; it fits where with `resident_bytes` it needs at
/// most `most_memory` of Inductor's memory (eager's where Inductor cannot run).
///   1. of the plans that are fast enough, fit, and gain more than the clock's noise, the fastest;
///   2. of PyTorch's ways, where both are within a tenth in both measures, the one that keeps the
///      device busy for less: such calls are the host's, whose moments differ by more;
///      else of those that are fast enough and fit, the nearest to the better one in both
///      measures; eager among equals, for it compiles nothing;
///   3. of the plans that are fast enough and fit, the fastest, though it gains nothing: no way of
///      PyTorch's keeps both bounds;
///   4. of PyTorch's ways that are fast enough, the one with the least memory;
///   5. the nearest in its worse measure, one that does not fit counting for `too_large` of it, a
///      plan only where it fits and gains in the mean.
Decision decide(const std::vector<Way>& ways, int64_t resident_bytes);

/// Bytes that a call of a plan may allocate where one of PyTorch's allocates `peak_bytes`.
int64_t allowed_bytes(int64_t peak_bytes, int64_t resident_bytes);

/// Seconds that Inductor is expected to take for what a plan leaves to PyTorch, where it took
/// `whole` for the module, the start of its workers among them where they did not run already.
double rest_seconds(double whole);
/// Of a search of `search` seconds, what is kept for that: twice of it where that is at most a
/// quarter of the search, for the plan of products alone and the whole one; else once; or 0 where
/// it is more than half of the search, or more than three quarters where Inductor makes the module
/// `gain` times as fast as eager and that is `much_faster`: a plan without it would lose whatever
/// was found.
double kept_seconds(double rest, double search, double gain);

inline constexpr double promised = 0.98;     // of PyTorch's best, in each measure
inline constexpr double least = 0.985;       // the same, with room for what a clock is off
inline constexpr double least_win = 1.005;   // in the geometric mean
inline constexpr double clear_win = 1.02;    // the same, where nothing is left to chance
inline constexpr double much_faster = 1.25;  // Inductor than eager, back to back
inline constexpr double most_memory = 1.05;
/// More than that share is allowed up to here: workspaces do not shrink with a small module.
inline constexpr int64_t memory_slack = int64_t{16} << 20;

}  // namespace tessera::pipeline
