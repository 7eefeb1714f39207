// What all journeys of one evaluator share, and the gates: requests to the evaluator process about
// one candidate, as trials.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "evaluate/build_farm.h"
#include "evaluate/evaluate.h"
#include "evaluate/session.h"

namespace tessera::evaluate {

struct Evaluator::State {
  State(Options o, const graph::Graph& g, const arch::Arch& a);
  Options options;
  const graph::Graph& graph;
  const arch::Arch& arch;
  Session session;
  BuildFarm farm;

  // Compilers on the host would disturb the host's own clock.
  [[nodiscard]] bool builds_ahead() const { return arch.device == "cuda" || options.always_ahead; }
  [[nodiscard]] int compilers() const;
  /// What one build of this source takes: as its family's have, else a guess.
  [[nodiscard]] double build_seconds(const kernel::Candidate& c) const;
  void learn_build(const kernel::Candidate& c, const toolchain::Built& built);

 private:
  std::map<std::string, std::pair<double, int>> builds_;  // family -> seconds, how many
};

/// The candidates of one pattern at the gates.
struct Gates {
  Evaluator::State& shared;
  const rules::Pattern& pattern;
  std::vector<kernel::Candidate> candidates;
  std::vector<std::optional<toolchain::Built>> built;
  double eager_ms = 0;

  [[nodiscard]] bool is_eager(int candidate) const {
    return candidates[static_cast<std::size_t>(candidate)].is_eager();
  }
  /// The trial, measured when it is right, and the evaluator's reply; `level`: "quick" or "full".
  std::pair<tune::Trial, Json> verify(tune::Point p, const char* level);
  /// Finals get more time on the clock, and are timed under load.
  std::vector<tune::Trial> measure(const std::vector<tune::Point>& points, bool final);
  /// tune::Callbacks::build.
  std::vector<tune::Trial> build(const std::vector<int>& which, double seconds,
                                 const std::atomic<bool>& stop);

 private:
  [[nodiscard]] Json wire(tune::Point p) const;
  [[nodiscard]] tune::Trial anchor(const Json& reply) const;
};

/// Inf and nan travel as strings; 0 where there is none.
double number(const Json& j, const char* key);
void take_errors(kernel::Evidence& e, const Json& reply);

}  // namespace tessera::evaluate
