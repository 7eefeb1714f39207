// Composition walks the modes of b through the modes of a, which is right as long as sums of b's
// modes never carry from one mode of a into the next.
#include <numeric>
#include <optional>

#include "layout/fit.h"
#include "layout/modes.h"

namespace tessera {
namespace {

using layout::Mode;

constexpr Code not_composable{"TS0103", "layout.not_composable"};

/// b walked through a (coalesced), where extents and strides divide each other. Within a's domain.
std::optional<Layout> walk(const std::vector<Mode>& a, Mode b) {
  if (b.extent == 1) return Layout();
  if (b.stride == 0) return Layout(b.extent, 0);
  std::vector<Mode> out;
  for (std::size_t i = 0; i < a.size() && b.extent > 1; ++i) {
    const Mode& m = a[i];
    if (i + 1 == a.size() || (b.extent - 1) * b.stride < m.extent) {
      out.push_back({b.extent, m.stride * b.stride});
      b.extent = 1;
    } else if (b.stride % m.extent == 0) {
      b.stride /= m.extent;
    } else if (m.extent % b.stride == 0 && b.extent % (m.extent / b.stride) == 0) {
      out.push_back({m.extent / b.stride, m.stride * b.stride});
      b = {b.extent / (m.extent / b.stride), 1};
    } else {
      return std::nullopt;
    }
  }
  return coalesce(layout::from_modes(out));
}

/// An upper bound of (i * stride) % modulus over i < extent, attained unless i * stride wraps
/// without filling the modulus.
int64_t largest_residue(Mode m, int64_t modulus) {
  const int64_t step = m.stride % modulus;
  const int64_t top = (m.extent - 1) * step;
  return top < modulus ? top : modulus - std::gcd(step, modulus);
}

/// Sums of b's modes never carry across an end of a mode of a.
bool no_carry(const std::vector<Mode>& a, const std::vector<Mode>& b) {
  int64_t modulus = 1;
  for (std::size_t i = 0; i + 1 < a.size(); ++i) {
    modulus *= a[i].extent;
    int64_t sum = 0;
    for (const Mode& m : b) sum += largest_residue(m, modulus);
    if (sum >= modulus) return false;
  }
  return true;
}

/// Each leaf of b walked by itself.
std::optional<Layout> walk(const std::vector<Mode>& a, const IntTuple& shape,
                           const IntTuple& stride) {
  if (shape.is_leaf) return walk(a, {shape.value, stride.value});
  std::vector<Layout> modes;
  for (std::size_t i = 0; i < shape.items.size(); ++i) {
    std::optional<Layout> m = walk(a, shape.items[i], stride.items[i]);
    if (!m) return std::nullopt;
    modes.push_back(*std::move(m));
  }
  return concat(modes);
}

Diagnostic refusal(const Layout& a, const Layout& b) {
  return fail(not_composable, "{} cannot be walked through {}", to_string(b), to_string(a))
      .help("choose extents and strides that divide each other");
}

}  // namespace

Result<Layout> compose(const Layout& a, const Layout& b) {
  if (b.cosize() > a.size()) {
    return error(refusal(a, b)
                     .expect("offsets below {}", a.size())
                     .but_found("an offset of {}", b.cosize() - 1));
  }
  const std::vector<Mode> modes = layout::coalesced_modes(a);
  const auto walked = walk(modes, b.shape(), b.stride());
  if (walked && no_carry(modes, layout::flat_modes(b))) return *walked;
  // A mode's layout is determined by its function, so a search of all elements is complete.
  if (b.size() > layout::most_enumerated)
    return error(refusal(a, b).note("too large for a search of all {} elements", b.size()));
  const auto fitted = layout::fit(b.shape(), [&](int64_t i) { return a(b(i)); });
  if (!fitted) return error(refusal(a, b));
  return *fitted;
}

}  // namespace tessera
