// The layout that is a given function, where one is.
#pragma once

#include <functional>
#include <optional>

#include "layout/layout.h"

namespace tessera::layout {

/// The coalesced layout with result(i) == f(i) for all i in [0, size), or nothing when no layout is
/// f. Calls f at most twice for every i.
///
/// The answer is complete because a coalesced layout is determined by its function: its first mode
/// ends exactly where f stops being i * f(1).
std::optional<Layout> fit(int64_t size, const std::function<int64_t(int64_t)>& f);

/// The same with a mode for each leaf of `shape`, nested as the shape is.
std::optional<Layout> fit(const IntTuple& shape, const std::function<int64_t(int64_t)>& f);

/// Functions of more elements are not fitted, since that would take seconds.
inline constexpr int64_t most_enumerated = int64_t{1} << 20;

}  // namespace tessera::layout
