// What an author asserts of tags, decided for all sizes and every thread. docs/checker.md says how
// tags are followed.
#pragma once

#include "check/runs.h"

namespace tessera::check {

struct Assertions {
  int all = 0, proved = 0;
  std::vector<Violation> violations;
  const core::Op* undecided = nullptr;  // the first one
  std::string why;                      // it is undecided
};

/// `runs` have been proved.
Assertions assertions(const core::Kernel& kernel, const Runs& runs);

}  // namespace tessera::check
