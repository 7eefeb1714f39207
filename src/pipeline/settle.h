// Which way to run the module is handed over: PyTorch's own, or a plan's kernels.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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
  int64_t peak_bytes = 0;  // that a call allocates
  double seconds = 0;      // to compile and warm
  std::string reason;      // why it cannot run; its times mean nothing then
};
std::vector<Way> ways_from(const Json& rows);
/// "eager", "kernels with inductor for the rest".
std::string name_of(const Way& way);

struct Decision {
  int way = -1;     // -1: none can run
  std::string why;  // for people: the figures that decided
};

/// The way that is handed over. A plan's kernels win where in both measures they are at `least` or
/// more of PyTorch's best way, by the geometric mean of both they gain more than the clock's noise,
/// and with `resident_bytes` they need at most `most_memory` of Inductor's memory (eager's where
/// Inductor is not asked). Else PyTorch's way that is nearest to the best in both measures; eager
/// among equals, for it compiles nothing.
Decision decide(const std::vector<Way>& ways, int64_t resident_bytes);

/// Bytes that a call of a plan may allocate where one of PyTorch's allocates `peak_bytes`.
int64_t allowed_bytes(int64_t peak_bytes, int64_t resident_bytes);

inline constexpr double least = 0.985;      // of PyTorch's best, in each measure
inline constexpr double least_win = 1.005;  // in the geometric mean
inline constexpr double most_memory = 1.05;
/// More than that share is allowed up to here: workspaces do not shrink with a small module.
inline constexpr int64_t memory_slack = int64_t{16} << 20;

}  // namespace tessera::pipeline
