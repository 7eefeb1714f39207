// A kind of invariant: a law that a kernel keeps, and how it is decided. One file a kind in
// check/kinds/; the folder is the registry.
#pragma once

#include <span>

#include "check/assertions.h"
#include "check/check.h"
#include "check/flow.h"
#include "check/runs.h"

namespace tessera::check {

/// What kinds look at.
struct Subject {
  const core::Kernel& kernel;
  const Runs& runs;
  const std::optional<Means>& means;
  const std::optional<Flow>& flow;  // where there is a meaning, and the runs are proved
  const std::optional<Assertions>& assertions = std::nullopt;  // where the runs are proved
};

struct Kind {
  std::string_view name;  // "race_shared"
  int number = 0;         // in the table of docs/checker.md
  std::string_view law;
  Code code;
  /// The verdict, but for Finding::kind.
  Finding (*judge)(const Subject& s, const Kind& k);
};

namespace kinds {
std::span<const Kind* const> all();
}

/// For kinds that the runs decide: refuted by the violations of the kind's name, proved where the
/// runs for all sizes found none.
Finding judge_by_runs(const Subject& s, const Kind& k);

/// For kinds that trace elements, the same by Flow. What one of them finds, or cannot decide,
/// leaves those after it undecided: k_agreement, reduction, placement, output_once.
Finding judge_by_flow(const Subject& s, const Kind& k);

/// A diagnostic of the kind with the op's place and those rows that every refutation has.
Diagnostic refutation(const Subject& s, const Kind& k, const Violation& v);

Finding proved(std::string how = "");
Finding unknown(std::string why);

}  // namespace tessera::check
