// What the files of this folder share: a layout as a list of flat modes, and the codes that several
// of them report.
#pragma once

#include <vector>

#include "layout/layout.h"

namespace tessera::layout {

inline constexpr Code not_composable{"TS0103", "layout.not_composable"};
inline constexpr Code bad_recast{"TS0109", "layout.bad_recast"};

/// extent:stride, without nesting.
struct Mode {
  int64_t extent = 1;
  int64_t stride = 0;
  friend bool operator==(const Mode&, const Mode&) = default;
};

/// The leaves from left to right, extents of 1 included.
std::vector<Mode> flat_modes(const Layout& l);
/// The modes of coalesce(l) that have more than one element.
std::vector<Mode> coalesced_modes(const Layout& l);
/// A flat layout; 1:0 of no modes, a leaf of one.
Layout from_modes(const std::vector<Mode>& modes);

}  // namespace tessera::layout
