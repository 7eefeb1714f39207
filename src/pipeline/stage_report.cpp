// What the stages found, put together for the report.
#include <algorithm>

#include "pipeline/report.h"
#include "pipeline/why_not.h"

namespace tessera::pipeline {
namespace {

PatternReport about(const Session& s, const Chosen& placed, int index) {
  PatternReport out{.pattern = &s.pattern(index), .work = s.work_of(index)};
  const std::vector<int>& chosen = placed.choice.chosen;
  out.active = std::any_of(chosen.begin(), chosen.end(), [&](int option) {
    return placed.origins[static_cast<std::size_t>(option)].pattern == index;
  });
  out.tells_search = out.work != nullptr && out.work->patterns.front() == index;
  if (!out.active) out.inactive_because = why_not(s, placed, index);
  return out;
}

}  // namespace

Report make_report(const Session& s, const Results& results) {
  Report out{.found = &s.found,
             .device = s.tools.device_name,
             .effort = s.options.effort,
             .toolchain = s.tools.evaluation.tools.to_json(),
             .baseline = s.baseline.ways,
             .settled = results.settled ? &*results.settled : nullptr,
             .refinements = results.refinements,
             .verification = results.verification,
             .module = results.times,
             .stage_seconds = s.timings,
             .stopped = s.stopped()};
  const Chosen nothing;
  const Chosen& placed = results.settled ? results.settled->chosen : nothing;
  const int count = static_cast<int>(s.found.discovery.patterns.size());
  for (int i = 0; i < count; ++i) out.patterns.push_back(about(s, placed, i));
  if (!s.options.checkpoints.empty()) out.checkpoints = results.checkpoints;
  return out;
}

}  // namespace tessera::pipeline
