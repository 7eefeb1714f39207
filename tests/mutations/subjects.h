// The kernels whose mutants are counted (bench/suites/mutations.py).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/kernel.h"
#include "core/testing/mutate.h"

namespace tessera::mutations {

struct MutationSubject {
  std::string name;  // "clusters"
  /// With `root`, the repository: kernels of kernel files, at tiles that the interpreter runs fast.
  std::function<Result<core::Kernel>(const std::string& root)> make;
  bool storages = false;  // the edits of storages and bounds alone
};

const std::vector<MutationSubject>& mutation_subjects();

/// Right kernels, which have to be proved: the subjects at other tiles, orders and depths.
const std::vector<MutationSubject>& correct_variants();

/// Every operator that applies, at most `sites` places each, in the order of the text. Of a kernel
/// without a meaning those that break data are left out: nothing says what is right.
std::vector<core::testing::Mutant> mutants_of(const core::Kernel& kernel, bool storages,
                                              int sites = 50);

}  // namespace tessera::mutations
