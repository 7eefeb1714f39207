// Patterns beyond the rules: what a person or an agent proposes is judged by the graph, and kept
// where it is legal.
#pragma once

#include <optional>
#include <vector>

#include "pipeline/pipeline.h"
#include "rules/proposed.h"

namespace tessera::pipeline {

/// The subgraphs that were proposed before, as the registry keeps them; none where it is not used.
Result<std::vector<Json>> proposed_before(const Options& options);

struct Proposed {
  rules::Proposal proposal;
  std::optional<Diagnostic> refused;  // why it is no pattern
  std::string signature;              // of the pattern that it is
};

/// Judges each by the canonical graph of `found`; those that are legal are stored in the registry,
/// and found from then on like the patterns of any rule. Errors: TS0239, of the registry.
Result<std::vector<Proposed>> propose(const Discovered& found,
                                      const std::vector<rules::Proposal>& proposals,
                                      const Options& options);

/// Takes proposals of these names back: they are no patterns any more, in any module. Errors:
/// TS0260 no proposal of that name, and then none is taken back; TS0239, of the registry.
Status withdraw(const std::vector<std::string>& names, const Options& options);

/// The pattern that a legal proposal has become in what was discovered after it; null otherwise.
const rules::Pattern* pattern_of(const Discovered& found, const Proposed& proposed);

}  // namespace tessera::pipeline
