#include "layout/recast.h"

#include <functional>
#include <numeric>

#include "layout/image.h"
#include "layout/modes.h"

namespace tessera {
namespace {

using layout::Mode;

/// The same nesting with every leaf replaced.
Layout map_leaves(const Layout& l, const std::function<Mode(Mode)>& f) {
  if (l.shape().is_leaf) {
    const Mode m = f({l.shape().value, l.stride().value});
    return {m.extent, m.stride};
  }
  std::vector<Layout> modes;
  for (int i = 0; i < l.rank(); ++i) modes.push_back(map_leaves(l.mode(i), f));
  return concat(modes);
}

Diagnostic refusal(const Layout& l, std::string_view to, std::string_view why) {
  return fail(layout::bad_recast, "{} cannot be seen as elements {}", to_string(l), to)
      .note("{}", why);
}

}  // namespace

Result<Layout> upcast(const Layout& l, int64_t n) {
  if (n < 1) return error(refusal(l, fmt::format("{} times as wide", n), "a factor is above 0"));
  if (n == 1) return l;
  std::vector<Mode> within;
  bool fits = true;
  Layout wide = map_leaves(l, [&](Mode m) -> Mode {
    if (m.extent == 1) return {};
    if (m.stride % n == 0) return {m.extent, m.stride / n};
    // n / stride elements of this leaf lie in one wide element.
    const int64_t room = n / std::gcd(n, m.stride);
    fits = fits && n % m.stride == 0 && (m.extent % room == 0 || m.extent < room);
    if (m.extent <= room) {
      within.push_back(m);
      return {};
    }
    within.push_back({room, m.stride});
    return {m.extent / room, 1};
  });
  const Layout one = layout::from_modes(within);
  if (!fits || one.size() != n || !is_bijective(one)) {
    return error(refusal(l, fmt::format("{} times as wide", n), "wide elements are reached in part")
                     .expect("{} elements side by side, and multiples of {} beyond", n, n));
  }
  return wide;
}

Result<Layout> downcast(const Layout& l, int64_t n) {
  if (n < 1) return error(refusal(l, fmt::format("1/{} as wide", n), "a factor is above 0"));
  if (n == 1) return l;
  int long_leaves = 0;
  int short_leaves = 0;
  for (const Mode& m : layout::flat_modes(l))
    if (m.stride == 1) ++(m.extent > 1 ? long_leaves : short_leaves);
  if (long_leaves > 1 || (long_leaves == 0 && short_leaves != 1)) {
    return error(
        refusal(l, fmt::format("1/{} as wide", n), "no mode says where the parts of an element go")
            .expect("one mode of stride 1"));
  }
  return map_leaves(l, [&](Mode m) -> Mode {
    if (m.stride == 1 && (m.extent > 1 || long_leaves == 0)) return {m.extent * n, 1};
    return {m.extent, m.stride * n};
  });
}

Result<Layout> recast(const Layout& l, int64_t from, int64_t to) {
  if (from < 1 || to < 1)
    return error(refusal(l, fmt::format("of {} bits", to), "an element has at least one bit"));
  const int64_t common = std::gcd(from, to);
  TESSERA_TRY(narrow, downcast(l, from / common));
  return upcast(narrow, to / common);
}

}  // namespace tessera
