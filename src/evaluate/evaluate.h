// A pattern's candidates through their gates: build, verify against fp64, measure beside an anchor.
//
// Everything that can crash runs in an evaluator process; when it dies, the candidate that killed
// it is recorded (crashed, with the signal; timed out) and a new process goes on with the next.
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bridge/bridge.h"
#include "graph/graph.h"
#include "realize/realize.h"
#include "rules/rules.h"
#include "toolchain/toolchain.h"
#include "tune/tune.h"

namespace tessera::evaluate {

struct Options {
  std::filesystem::path python;
  toolchain::Toolchain tools;
  std::filesystem::path cache;  // of built kernels
  std::filesystem::path log_folder;
  std::string effort = "default";
  int parallel_builds = 0;  // 0: one a core
  std::chrono::seconds build_limit{600};
  std::chrono::seconds measure_limit{60};
};

/// What is known about one candidate after its gates.
struct Evidence {
  double ms = 0;
  double ci95 = 0;
  double sustained_ms = 0;        // a call back to back; 0: not measured
  double max_error = 0;           // relative to the mean magnitude of the reference
  double rms_error = 0;           // relative RMS
  double baseline_max_error = 0;  // the same of eager at this precision
  double baseline_rms_error = 0;
  Json resources = Json::object();
  [[nodiscard]] Json to_json() const;
};

struct Tuned {
  /// The winners, fastest first: the best of each kind at least; empty when nothing passed.
  struct Winner {
    realize::Candidate candidate;
    int launch = 0;
    std::optional<toolchain::Built> built;
    Evidence evidence;
  };
  std::vector<Winner> winners;
  double eager_ms = 0;
  std::vector<tune::Trial> trials;  // every point tried, failures with their reasons
  std::vector<std::string> labels;  // of candidates, by Trial::point.candidate
  std::vector<std::pair<std::string, std::string>> unsupported;  // realizer, reason
  std::vector<std::pair<std::string, int>> pruned;
  std::string stopped_because;
  double seconds = 0;
  [[nodiscard]] Json to_json() const;
};

/// One evaluator process at a time, restarted when it dies.
class Evaluator {
 public:
  Evaluator(Options options, const graph::Graph& g, const arch::Arch& arch);
  ~Evaluator();
  /// What the evaluator process says of itself: torch, device name, capability.
  Result<Json> hello();
  /// The whole journey of one pattern, in at most `seconds` (0: what the effort allows). `known`
  /// trials (a list of trial_to_json) of an interrupted run are not repeated. `progress` hears
  /// {"pattern","stage","done","total", "best_ms","eager_ms","message"}, and for every new trial
  /// {"pattern","stage":"trial","trial":{...},"message"}, which is what to store for a resume. An
  /// error when the references cannot be made at all; that no candidate passed is a Tuned without
  /// winners.
  Result<Tuned> tune(const rules::Pattern& pattern,
                     const std::vector<realize::Candidate>& candidates, const Json& known,
                     double seconds, const std::atomic<bool>& stop,
                     const std::function<void(const Json& progress)>& progress);
  /// What the patterns to come will build, in their order (their candidates as offered): compilers
  /// that the current pattern leaves idle begin with it. Replaces what was said before; nothing on
  /// an architecture whose clock compilers would disturb.
  Status build_later(const std::vector<std::vector<realize::Candidate>>& patterns);
  /// Builds (or takes from the cache) and verifies one stored winner, without measuring: what a
  /// second run does.
  Result<Tuned::Winner> revive(const rules::Pattern& pattern, const realize::Candidate& candidate,
                               int launch, bool verify);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// All realizers' candidates for a pattern, best predictions first, with what is unsupported and
/// why.
struct Offers {
  std::vector<realize::Candidate> candidates;
  std::vector<std::pair<std::string, std::string>> unsupported;
  std::vector<std::pair<std::string, int>> pruned;
};
Offers offers(const rules::Pattern& pattern, const graph::Graph& g, const arch::Arch& arch);

/// Candidates as the search sees them.
std::vector<tune::Item> items_of(const std::vector<realize::Candidate>& candidates);

/// A trial as progress reports it and an interrupted search gets it back (`known` of tune):
/// {"label", "realizer", "kind", "config", "knobs", "outcome", "ms", "ci95", "reason", "detail"}.
/// Candidates are recognized by realizer, config and knobs, so the list may have changed meanwhile.
Json trial_to_json(const tune::Trial& trial, const std::vector<realize::Candidate>& candidates);
std::vector<tune::Trial> trials_from_json(const Json& known,
                                          const std::vector<realize::Candidate>& candidates);

/// A candidate as the evaluator process and a plan step take it (docs/protocol.md).
Json to_json(const realize::Candidate& candidate, int launch,
             const std::optional<toolchain::Built>& built);

}  // namespace tessera::evaluate
