// The report: everything that was found, tried and measured (docs/report.md).
#pragma once

#include <string>
#include <vector>

#include "pipeline/stages.h"

namespace tessera::pipeline {

/// What a report tells of one pattern.
struct PatternReport {
  const rules::Pattern* pattern = nullptr;
  bool active = false;
  const Work* work = nullptr;    // that it is a place of; nullptr where there are no works
  bool tells_search = false;     // the first place of a work carries its search's trials
  std::string inactive_because;  // "" where it is active
};

/// A session's values and what was settled, which it is of, outlive it.
struct Report {
  const Discovered* found = nullptr;
  std::string device;
  std::string effort;
  Json toolchain = Json::object();      // toolchain::Toolchain::to_json()
  Json baseline;                        // Baseline::ways; null where they decide nothing
  const Settled* settled = nullptr;     // nullptr of a search alone
  std::vector<PatternReport> patterns;  // in the order of the discovery
  std::vector<Refinement> refinements;  // in the order in which they were made
  std::optional<std::vector<Checkpoint>> checkpoints;  // none where none was asked for
  Verification verification;
  Json module = Json::object();         // the tracer's answer to measure_module
  Json stage_seconds = Json::object();  // by stage
  bool stopped = false;
};

/// Of what the stages found.
Report make_report(const Session& s, const Results& results);

// The parts, as docs/report.md has them: `settled` less the baseline, a row of `refinements`, a row
// of `checkpoints`, `verification`.
Json to_json(const Decided& decided);
Json to_json(const Refinement& refinement);
Json to_json(const Checkpoint& checkpoint);
Json to_json(const Verification& verification);

/// Schema tessera.report/1. Who reads it back (the text for people, the page, benchmarks) reads the
/// JSON.
Json to_json(const Report& report);

}  // namespace tessera::pipeline
