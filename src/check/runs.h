// A kernel's synchronization, run for small numbers of turns, and for all of them.
//
// Small numbers refute: a violation in a run of given sizes is one of the kernel. For all sizes the
// loops of sizes end, or go on, whenever they can be asked, and states that go on alike are taken
// for one; a finite number of them stands for every number of turns. docs/checker.md has the proof.
#pragma once

#include "check/machine.h"

namespace tessera::check {

struct Limits {
  int64_t events = 4'000'000;  // of all runs together
  int64_t states = 20'000;     // of the runs that stand for all sizes
};

struct Runs {
  std::vector<Violation> violations;
  bool proved = false;
  bool unsupported = false;        // something in it is not modelled
  std::string why_not;             // of not proved and no violations
  const core::Op* at = nullptr;    // that `why_not` speaks of
  std::set<ReadsFrom> reads_from;  // of proved: all there are
  std::set<const core::Op*> seen;
  std::vector<Term> sizes;  // what Violation::sizes are the values of
  int64_t states = 0, events = 0;
  // Of proved: what synchronizes repeats after `period` turns of an outer loop, from turn `steady`
  // on.
  int64_t period = 1, steady = 0;
};

Runs run(const core::Kernel& kernel, const Limits& limits = {});

}  // namespace tessera::check
