// Whether the times of a kernel by hand and its peers change what the registry has.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "evaluate/evaluate.h"

#include "kernel/candidate.h"
#include "kernel/winner.h"

namespace tessera::pipeline {

/// Whether the spread is so large that other work ran on the machine (settle.h, `most_noise`).
bool disturbed(double ms, double ci95);

/// The first winner that the registry has.
struct Held {
  kernel::Winner winner;  // with what it took beside the others, where it was timed there
  bool beside = false;    // it was; else its evidence is of another moment
};

struct Promotion {
  bool stored = false;  // the winners of this run take the registry's place
  bool won = false;     // and the first of them is one of the variants
  std::string why;      // in words
};

/// What was the fastest of all is stored, whoever made it: a kernel by hand is held back by nothing
/// that is not stored in its place. A disturbed time takes the place of none that lies within its
/// spread. `turns`: measurements that there were, at most, for the text.
Promotion promote(const evaluate::Tuned& tuned, const std::vector<kernel::Candidate>& variants,
                  const std::optional<Held>& held, bool registry, int turns);

}  // namespace tessera::pipeline
