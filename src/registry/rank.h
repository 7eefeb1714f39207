// Which of two entries is kept, and how far a relative is (private to the folder; pure functions).
#pragma once

#include <optional>
#include <string>

#include "registry/registry.h"

namespace tessera::registry {

/// What the registry holds after `incoming` meets `held` (same key and toolchain): the better one,
/// with the failed trials of both. An accepted entry is never replaced by a failed or a slower one;
/// of two equally fast ones that whose winners were tried in a module's run stays.
Entry merge(const Entry& held, const Entry& incoming);

/// The sum of |log2 ratio| over the extents, or nothing when they are of another kind or one is
/// more than a factor of two away.
std::optional<double> distance(const Json& extents_a, const Json& extents_b);

/// True when the entry satisfies the filter of Registry::list.
Result<bool> matches(const Entry& e, const std::string& filter);

/// "2026-11-21T03:18:11Z".
std::string now_utc();
/// The same for `days` before now.
std::string utc_before(double days);

}  // namespace tessera::registry
