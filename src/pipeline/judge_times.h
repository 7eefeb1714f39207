// Times of a judged module and its peers, by this program's clock: each round has inputs of its
// own, and some result of every round is compared after it.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "pipeline/judge.h"
#include "pipeline/judge_processes.h"

namespace tessera::pipeline {

/// One of those that take turns.
struct Runner {
  std::string name;                // "" for the judged module
  std::vector<double> outside_ms;  // a call's, one a round
  std::vector<double> inside_ms;   // the same by the process's own clock
  std::vector<double> device_ms;   // by events, on CUDA
  std::string reason;              // why it has no time
};

struct Timed {
  std::vector<Runner> runners;  // the judged module first
  int calls = 0;                // in a round
  /// The first thing that was wrong with the judged module, as its process or the judge said it.
  Json breach;
};

struct Median {
  double ms = 0;
  double ci95 = 0;  // half of the interval, by order statistics
};
Median median_of(std::vector<double> samples);

/// Errors: of the judge's process, which is ours; and of the judged one, where it ended or raised.
struct Parties {
  Occupant& judge;
  Occupant& judged;
};
Result<Timed> take_times(const Parties& parties, const Judging& given, int most_calls);

}  // namespace tessera::pipeline
