// Whether two indices share an offset: the number of distinct offsets, counted without looking at
// them where the modes in the order of their strides decide. Modes that overlap ((4,3):(2,3)
// reaches 6 in two ways) are enumerated, and only those.
#include <algorithm>
#include <numeric>
#include <span>

#include "layout/modes.h"

namespace tessera {
namespace {

using layout::Mode;

/// Modes that move the offset, by ascending stride.
std::vector<Mode> sorted_modes(const Layout& l) {
  std::vector<Mode> modes = layout::flat_modes(l);
  std::erase_if(modes, [](const Mode& m) { return m.extent == 1 || m.stride == 0; });
  std::sort(modes.begin(), modes.end(),
            [](const Mode& x, const Mode& y) { return x.stride < y.stride; });
  return modes;
}

/// The largest n such that [0, n) is reached. A mode whose stride is at most the prefix that
/// smaller strides cover lengthens it; a larger stride cannot reach the first offset that is
/// missing.
int64_t prefix_of(std::span<const Mode> sorted) {
  int64_t covered = 1;
  for (const Mode& m : sorted) {
    if (m.stride > covered) break;
    covered += (m.extent - 1) * m.stride;
  }
  return covered;
}

int64_t enumerate(std::span<const Mode> modes) {
  std::vector<int64_t> sums = {0};
  for (const Mode& m : modes) {
    const std::size_t before = sums.size();
    for (int64_t i = 1; i < m.extent; ++i)
      for (std::size_t k = 0; k < before; ++k) sums.push_back(sums[k] + i * m.stride);
    std::sort(sums.begin(), sums.end());
    sums.erase(std::unique(sums.begin(), sums.end()), sums.end());
  }
  return static_cast<int64_t>(sums.size());
}

/// Of modes whose images may overlap.
int64_t image_of_group(std::vector<Mode> group) {
  int64_t unit = 0;
  for (const Mode& m : group) unit = std::gcd(unit, m.stride);
  int64_t span = 0;
  int64_t count = 1;
  bool apart = true;
  for (Mode& m : group) {
    m.stride /= unit;
    apart = apart && m.stride > span;
    span += (m.extent - 1) * m.stride;
    count *= m.extent;
  }
  if (apart) return count;
  if (prefix_of(group) == span + 1) return span + 1;
  return enumerate(group);
}

/// The number of distinct offsets.
int64_t image_size(const Layout& l) {
  const std::vector<Mode> modes = sorted_modes(l);
  // Sums of the modes from k on are multiples of above[k]. Where that exceeds what the modes before
  // k span, an offset tells both sums, so that the two images multiply.
  std::vector<int64_t> above(modes.size() + 1, 0);
  for (std::size_t k = modes.size(); k-- > 0;) above[k] = std::gcd(above[k + 1], modes[k].stride);
  int64_t count = 1;
  int64_t span = 0;
  std::vector<Mode> group;
  for (std::size_t k = 0; k < modes.size(); ++k) {
    group.push_back(modes[k]);
    span += (modes[k].extent - 1) * modes[k].stride;
    if (k + 1 < modes.size() && above[k + 1] <= span) continue;
    count *= image_of_group(group);
    group.clear();
    span = 0;
  }
  return count;
}

}  // namespace

bool is_injective(const Layout& l) {
  return l.size() <= l.cosize() && image_size(l) == l.size();
}

}  // namespace tessera
