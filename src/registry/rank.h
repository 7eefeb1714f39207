// Which of two entries is kept, and how far a relative is (private to the folder; pure functions).
#pragma once

#include <optional>
#include <string>

#include "registry/registry.h"

namespace tessera::registry {

/// Whether `a` would take the place of `than`: accepted before failed, reliable figures before
/// others, then the smaller time of the fastest winner by itself, then the one whose winners were
/// tried in a module's run.
bool better(const Entry& a, const Entry& than);

/// What the registry holds after `incoming` meets `held` (same key and toolchain): the better one,
/// with the thoroughness and the failed trials of both, and without winners that those name as
/// wrong. An accepted entry is never replaced by a failed one, nor by a slower one, unless the new
/// one tried its winners beside others (`replaces`), is of the same run, or has other versions of
/// the libraries.
Entry merge(const Entry& held, const Entry& incoming);

/// The sum of |log2 ratio| over the extents, or nothing when they are of another kind or one is
/// more than a factor of two away.
std::optional<double> distance(const Json& extents_a, const Json& extents_b);

/// True when the entry satisfies the filter of Registry::list.
Result<bool> matches(const Entry& e, const std::string& filter);

}  // namespace tessera::registry
