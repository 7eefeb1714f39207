// What is known of a kernel before it runs: whether the machine can run it, and what is proved.
#pragma once

#include "diag/result.h"

#include "check/check.h"
#include "core/kernel.h"

namespace tessera::commands {

struct Judged {
  bool runs = true;                     // the machine can run it; else nothing is proved
  std::vector<Diagnostic> diagnostics;  // of the verifier
  check::Report report;
  [[nodiscard]] check::Verdict verdict() const {
    return runs ? report.verdict() : check::Verdict::refuted;
  }
};

/// The kernel verified, then checked against what it says that it means. TS0878 for a meaning that
/// cannot be read.
Result<Judged> judge(const core::Kernel& kernel);

/// ok, refuted or undecided.
Exit exit_of(check::Verdict v);

/// [{"kind", "verdict", "reason", "diagnostics"}], one a kind.
Json findings_of(const check::Report& r);
/// {"stores": {"all", "proved"}, "loads": {"all", "untagged"}, "assertions": {"all", "proved"}}
Json coverage_of(const check::Report& r);

}  // namespace tessera::commands
