// Whether a kernel does what it says, for all sizes: `check` asks every kind of invariant
// (check/kinds/, one file a kind) and gathers their verdicts. docs/checker.md says what is assumed,
// what is proved and what lies outside.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "diag/diagnostic.h"

#include "check/coverage.h"
#include "check/means.h"
#include "core/kernel.h"

namespace tessera::check {

struct Kind;

enum class Verdict : uint8_t {
  proved,       // for all sizes and schedules
  refuted,      // with a witness
  unknown,      // the reason says what could not be decided
  unsupported,  // the kernel has something that the kind does not model
};
std::string_view name_of(Verdict v);

/// Limits in work, so that verdicts do not depend on the machine.
struct Effort {
  int64_t events = 4'000'000;  // of all runs together
  int64_t states = 20'000;     // of the runs that stand for all sizes
};

struct Finding {
  const Kind* kind = nullptr;
  Verdict verdict = Verdict::unknown;
  std::string reason;                   // of unknown and unsupported; of proved: how
  std::vector<Diagnostic> diagnostics;  // of refuted: at least one
  /// Of each diagnostic, where it comes of a run or of tracing: the op, and the other or null.
  std::vector<std::pair<const core::Op*, const core::Op*>> ops = {};
};

struct Report {
  std::vector<Finding> findings;  // one a kind, in the order of their names
  Coverage coverage;
  /// Numbers of turns of the kernel's loops, as terms of its parameters and the block's index: what
  /// "turns" in the data of the diagnostics are values of.
  std::vector<core::Term> sizes;

  /// The worst of the verdicts: refuted, then unsupported, then unknown.
  [[nodiscard]] Verdict verdict() const;
  [[nodiscard]] const Finding* find(std::string_view kind) const;
};

/// Without a meaning, kinds that compare with it are unknown.
Report check(const core::Kernel& kernel, const Effort& effort = {},
             const std::optional<Means>& means = std::nullopt);

/// A line a kind, then the coverage, then the diagnostics.
std::string to_text(const Report& r);

}  // namespace tessera::check
