// A pattern's candidates through their gates: build, verify against fp64, measure beside an anchor.
//
// Everything that can crash runs in an evaluator process; when it dies, the candidate that killed
// it is recorded (crashed, with the signal; timed out) and a new process goes on with the next.
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
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

#include "kernel/winner.h"

namespace tessera::evaluate {

struct Options {
  std::filesystem::path python;
  toolchain::Toolchain tools;
  std::filesystem::path cache;  // of built kernels
  std::filesystem::path log_folder;
  std::string effort = "default";
  /// A list that somebody asked for, whatever the effort: it ends by seconds or a stop alone.
  bool every_candidate = false;
  int parallel_builds = 0;  // 0: one a core
  /// Compilers run beside the clock also where they disturb it: for tests of the order of things.
  bool always_ahead = false;
  std::string only_kind;  // "synthesized" or "library": what may be placed; "" for both
  std::chrono::seconds build_limit{600};
  std::chrono::seconds measure_limit{60};
  /// The process that runs candidates is confined, as `tools` are: they are somebody else's.
  bool confined = false;
};

/// A candidate by name.
struct Named {
  std::string label;
  kernel::Kind kind = kernel::Kind::synthesized;
};

/// A realizer that has no candidate for a pattern.
struct Unsupported {
  std::string realizer;
  kernel::Kind kind = kernel::Kind::synthesized;  // of what it would have made
  std::string reason;
};
/// {"realizer", "kind", "reason"}.
Json to_json(const Unsupported& u);
/// Those of them that would have written a kernel, with their reasons.
std::vector<std::pair<std::string, std::string>> refused_of_ours(
    const std::vector<Unsupported>& unsupported);

struct Tuned {
  /// Fastest first: the best of each kind at least; empty when nothing passed.
  std::vector<kernel::Winner> winners;
  double eager_ms = 0;
  std::vector<tune::Trial> trials;  // every point tried, failures with their reasons
  std::vector<Named> candidates;    // by Trial::point.candidate
  std::vector<Unsupported> unsupported;
  std::vector<std::pair<std::string, int>> pruned;
  std::string stopped_because;
  bool cut = false;  // by seconds or by a stop: the search would have gone on
  double seconds = 0;
  /// Where they went: {"open": s, "free": s, "quick": s, "slow": s, "sweep": s, "finals": s,
  /// "verify": s}; what is 0 is absent.
  std::map<std::string, double> rounds;
  int hopeless = 0;  // candidates not built, as by the model they cannot win
  [[nodiscard]] Json to_json() const;
};

class Journey;  // journey.h

/// What hears of a search: see Evaluator::tune.
using Progress = std::function<void(const Json& progress)>;

/// One evaluator process at a time, restarted when it dies.
class Evaluator {
 public:
  Evaluator(Options options, const graph::Graph& g, const arch::Arch& arch);
  ~Evaluator();
  /// What the evaluator process says of itself: torch, device name, capability.
  Result<Json> hello();
  /// Begins to start the evaluator process, which takes seconds, and does not wait for it.
  Status wake();
  /// Starts the evaluator process, if it does not run, and waits until it answers; compilers begin
  /// with these meanwhile, of a search that has so many seconds (0: no limit). They go on where
  /// builds_ahead(), else none runs on return.
  Status start(const std::vector<const toolchain::Source*>& sources, double seconds_left = 0);
  /// The whole journey of one pattern, in at most `seconds` (0: what the effort allows). `known`
  /// trials (a list of trial_to_json) of an interrupted run are not repeated. `progress` hears
  /// {"pattern","stage","done","total", "best_ms","eager_ms","message"}, and for every new trial
  /// {"pattern","stage":"trial","trial":{...},"message"}, which is what to store for a resume. An
  /// error when the references cannot be made at all; that no candidate passed is a Tuned without
  /// winners.
  Result<Tuned> tune(const rules::Pattern& pattern,
                     const std::vector<kernel::Candidate>& candidates, const Json& known,
                     double seconds, const std::atomic<bool>& stop, const Progress& progress);
  /// The same journey to be advanced step by step, with others in between; it is not open yet.
  /// `pattern` and `stop` outlive it, and it must not outlive the evaluator.
  Result<std::unique_ptr<Journey>> begin(const rules::Pattern& pattern,
                                         std::vector<kernel::Candidate> candidates,
                                         const Json& known, const std::atomic<bool>& stop,
                                         const Progress& progress);
  /// Whether compilers run beside the clock: not where they would disturb it.
  [[nodiscard]] bool builds_ahead() const;
  /// What journeys will ask for, in this order: compilers begin with it. Replaces what was said
  /// before. `seconds_left` of the search, 0: no limit.
  void expect(const std::vector<const toolchain::Source*>& sources, double seconds_left = 0);
  /// How many of these have ended, well or badly.
  [[nodiscard]] int ended(const std::vector<const toolchain::Source*>& sources);
  /// Until a build ends, at most so many seconds.
  void wait(double seconds);
  /// Forgets what is expected and kills the compilers that run.
  void end_builds();
  /// Builds (or takes from the cache) and verifies one stored winner, without measuring: what a
  /// second run does.
  Result<kernel::Winner> revive(const rules::Pattern& pattern, const kernel::Candidate& candidate,
                                int launch, bool verify);
  /// What one verification may take from now on, before its process is ended; a measurement gets
  /// some seconds more for every candidate in it.
  void limit(std::chrono::seconds each);
  /// One candidate, built by now (none of a library's call), with its default launch against fp64
  /// on all inputs: the trial, measured when it is right, and the evaluator's reply as it is
  /// (docs/protocol.md, `verify`). An error when the references cannot be made.
  Result<std::pair<tune::Trial, Json>> examine(const rules::Pattern& pattern,
                                               const kernel::Candidate& candidate,
                                               const std::optional<toolchain::Built>& built);

  struct State;

 private:
  std::unique_ptr<State> state_;
};

/// All realizers' candidates for a pattern, best predictions first, with what is unsupported and
/// why.
struct Offers {
  std::vector<kernel::Candidate> candidates;
  std::vector<Unsupported> unsupported;
  std::vector<std::pair<std::string, int>> pruned;
};
Offers offers(const rules::Pattern& pattern, const graph::Graph& g, const arch::Arch& arch);

/// Leaves out what takes a compiler half a minute (CUTLASS) where the model promises little more of
/// it than of the best that builds in seconds. What won for a relative stays.
void leave_out_slow_builds(Offers& offers);

/// Candidates as the search sees them.
std::vector<tune::Item> items_of(const std::vector<kernel::Candidate>& candidates);

/// A trial as progress reports it and an interrupted search gets it back (`known` of tune):
/// {"label", "realizer", "kind", "config", "knobs", "outcome", "ms", "ci95", "reason", "detail"}.
/// Candidates are recognized by realizer, config and knobs, so the list may have changed meanwhile.
Json trial_to_json(const tune::Trial& trial, const std::vector<kernel::Candidate>& candidates);
std::vector<tune::Trial> trials_from_json(const Json& known,
                                          const std::vector<kernel::Candidate>& candidates);

}  // namespace tessera::evaluate
