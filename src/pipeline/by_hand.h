// One kernel that a person or an agent wrote, for one pattern of a module: through the gates that
// every candidate passes, and into the registry where it is the fastest there is.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "pipeline/pipeline.h"

#include "attempt/source.h"
#include "attempt/verdict.h"
#include "kernel/candidate.h"

namespace tessera::pipeline {

/// A kernel file with one choice of its constants, as far as it came.
struct FromLanguage {
  attempt::Failure failure = attempt::Failure::none;
  bool parsed = true;  // else `diagnostics` say why not
  bool proved = false;
  std::string note;  // what was proved, or what was not
  std::vector<Diagnostic> diagnostics;
  Json findings;  // of the checker; null where it was not asked
  std::optional<kernel::Candidate> candidate;
};

struct ByHand {
  std::string pattern;  // "p03"
  attempt::SourceFile source;
  std::vector<std::string> peers = {"eager", "inductor", "library"};
  std::chrono::seconds limit{60};  // one verification of it; one build takes ten times this
  bool again = false;              // whatever an earlier verdict on it says
  /// Reads, checks and lowers a kernel file for a pattern. Only asked for sources in the tile
  /// language.
  std::function<FromLanguage(const rules::Pattern&, const graph::Graph&, const arch::Arch&,
                             const Json& tunables)>
      elaborate;
};

/// The pattern of this name. Error TS0051: there is none; it lists those that there are.
Result<const rules::Pattern*> pattern_named(const Discovered& found, const std::string& id);

/// Errors are of the input and the environment alone: TS0051, TS0052 a source for another kind of
/// device, TS0025, and what keeps the references from being made. What is wrong with the kernel is
/// in the verdict.
Result<attempt::Verdict> try_by_hand(const Json& traced, const Options& options,
                                     const ByHand& given, const Context& context);

}  // namespace tessera::pipeline
