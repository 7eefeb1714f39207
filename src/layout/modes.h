// What the files of this folder share: a layout as a list of flat modes.
#pragma once

#include <vector>

#include "layout/layout.h"

namespace tessera::layout {

/// extent:stride, without nesting.
struct Mode {
  int64_t extent = 1;
  int64_t stride = 0;
};

/// The leaves from left to right, extents of 1 included.
std::vector<Mode> flat_modes(const Layout& l);
/// The modes of coalesce(l) that have more than one element.
std::vector<Mode> coalesced_modes(const Layout& l);
/// A flat layout; 1:0 of no modes, a leaf of one.
Layout from_modes(const std::vector<Mode>& modes);

}  // namespace tessera::layout
