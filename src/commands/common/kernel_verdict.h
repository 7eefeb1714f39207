// What is known of a kernel before it runs: whether the machine can run it, and what is proved.
#pragma once

#include "diag/result.h"

#include "check/check.h"
#include "core/kernel.h"
#include "equivalence/equivalence.h"

namespace tessera::commands {

struct Judged {
  bool runs = true;                     // the machine can run it; else nothing is proved
  std::vector<Diagnostic> diagnostics;  // of the verifier
  check::Report report;
  /// The kernel has a meaning, and this is asked for or something is not decided.
  std::optional<equivalence::Answer> equal;
  /// The worst of all: what differs is refuted where numbers differ, and unknown otherwise.
  [[nodiscard]] check::Verdict verdict() const;
};

/// The kernel verified, then checked against what it says that it means; with `compare`, or where
/// something is not decided, run beside it on residues too. TS0878 for a meaning that cannot be
/// read.
Result<Judged> judge(const core::Kernel& kernel, bool compare = false);

/// ok, refuted or undecided.
Exit exit_of(check::Verdict v);

/// {"verdict", "launches", "elements", "error", "reason", "element", "numbers_differ"}.
Json to_json(const equivalence::Answer& a);

/// [{"kind", "verdict", "reason", "diagnostics"}], one a kind.
Json findings_of(const check::Report& r);
/// {"stores": {"all", "proved"}, "loads": {"all", "untagged"}, "assertions": {"all", "proved"}}
Json coverage_of(const check::Report& r);

}  // namespace tessera::commands
