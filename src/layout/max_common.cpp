#include "layout/max_common.h"

#include <algorithm>

#include "layout/inverse.h"
#include "layout/modes.h"

namespace tessera {

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

}  // namespace tessera
