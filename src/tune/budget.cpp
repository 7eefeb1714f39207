#include "tune/tune.h"

namespace tessera::tune {
namespace {
inline constexpr Code unknown_effort{"TS0012", "input.unknown_effort"};
}

Result<Budget> budget_for(const std::string& effort) {
  if (effort == "quick") return Budget{.seconds = 60, .builds = 16, .measurements = 100};
  if (effort == "default") return Budget{.seconds = 240, .builds = 32, .measurements = 400};
  if (effort == "max") return Budget{.seconds = 1800, .builds = 0, .measurements = 0};
  return error(
      fail(unknown_effort, "unknown effort `{}`", effort).expect("one of quick, default, max"));
}

std::string_view name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::measured:
      return "measured";
    case Outcome::build_failed:
      return "build_failed";
    case Outcome::wrong_result:
      return "wrong_result";
    case Outcome::crashed:
      return "crashed";
    case Outcome::timed_out:
      return "timed_out";
    case Outcome::unsupported:
      return "unsupported";
    case Outcome::skipped:
      return "skipped";
  }
  return "skipped";
}

std::optional<Outcome> outcome_of(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(Outcome::skipped); ++i) {
    if (name_of(static_cast<Outcome>(i)) == name) return static_cast<Outcome>(i);
  }
  return std::nullopt;
}

}  // namespace tessera::tune
