// Realizers turn a pattern and an architecture into candidates: source text with a configuration,
// or a call to a vendor's library. All candidates of a pattern compete; library ones are labelled
// and never count as synthesized.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "arch/arch.h"
#include "rules/rules.h"

#include "kernel/candidate.h"

namespace tessera::realize {

using kernel::Candidate;
using kernel::Kind;
using kernel::Launch;
using kernel::LibraryCall;
using kernel::name_of;

/// The candidates of one realizer for one pattern, best prediction first, and what was pruned
/// before compiling.
struct Space {
  std::vector<Candidate> candidates;
  std::vector<std::pair<std::string, int>> pruned;  // reason, how many
};

struct Realizer {
  std::string_view name;
  std::string_view doc;
  Kind kind;
  std::string_view rule;  // the one rule that it realizes, or "" for any
  /// An error with a TS04xx code is "unsupported, because ...": recorded, never fatal.
  Result<Space> (*realize)(const rules::Pattern&, const graph::Graph&, const arch::Arch&);
};

std::span<const Realizer* const> all();

}  // namespace tessera::realize
