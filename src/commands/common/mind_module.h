// A module as a language model sees it: patterns with their facts and skeletons, and the nodes that
// no rule takes.
#pragma once

#include "pipeline/pipeline.h"

#include "agent/loop.h"

namespace tessera::commands {

/// Errors: those of the discovery.
Result<agent::Module> mind_module(const Json& traced, const pipeline::Options& options);

/// Subgraphs that the model proposes: what is legal is kept in the registry, and a pattern from
/// then on. Errors: of the registry.
Result<agent::Judged> judge_proposals(const std::vector<agent::Proposal>& proposals,
                                      const Json& traced, const pipeline::Options& options);

}  // namespace tessera::commands
