#include "layout/max_common.h"

#include <algorithm>

#include "layout/inverse.h"
#include "layout/modes.h"

namespace tessera {
namespace {

/// From the layout's first offset on, elements that its swizzle moves together.
int64_t moved_together(const SwizzledLayout& l) {
  if (l.swizzle().bits == 0) return INT64_MAX;
  const int64_t grain = int64_t{1} << l.swizzle().base;
  return grain - l.offset() % grain;
}

/// The first `most` elements.
Layout truncate(const Layout& l, int64_t most) {
  std::vector<layout::Mode> modes;
  for (layout::Mode m : layout::coalesced_modes(l)) {
    m.extent = std::min(m.extent, most);
    modes.push_back(m);
    most /= m.extent;
    if (most < 2) break;
  }
  return coalesce(layout::from_modes(modes));
}

}  // namespace

// Coalesced layouts differ as functions from the first index at which their modes differ, so the
// common prefix of both right inverses is a layout itself.
Layout max_common_layout(const Layout& a, const Layout& b) {
  const std::vector<layout::Mode> x = layout::coalesced_modes(right_inverse(a));
  const std::vector<layout::Mode> y = layout::coalesced_modes(right_inverse(b));
  std::vector<layout::Mode> common;
  for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    if (x[i].stride != y[i].stride) break;
    common.push_back({std::min(x[i].extent, y[i].extent), x[i].stride});
    if (x[i].extent != y[i].extent) break;
  }
  return coalesce(layout::from_modes(common));
}

int64_t max_common_vector(const Layout& a, const Layout& b) {
  return max_common_layout(a, b).size();
}

Layout max_common_layout(const SwizzledLayout& a, const SwizzledLayout& b) {
  const int64_t most = std::min(moved_together(a), moved_together(b));
  return truncate(max_common_layout(a.layout(), b.layout()), most);
}

int64_t max_common_vector(const SwizzledLayout& a, const SwizzledLayout& b) {
  return max_common_layout(a, b).size();
}

}  // namespace tessera
