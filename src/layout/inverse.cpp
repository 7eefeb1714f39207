#include "layout/inverse.h"

#include <algorithm>

#include "layout/image.h"
#include "layout/modes.h"

namespace tessera {
namespace {

constexpr Code no_inverse{"TS0106", "layout.no_inverse"};

struct Placed {
  layout::Mode mode;
  int64_t index_step;  // how far an index moves when the mode's coordinate grows by 1
};

/// By ascending stride; of equal strides the longest first, so that a right inverse takes it.
std::vector<Placed> sorted_modes(const Layout& l) {
  std::vector<Placed> out;
  int64_t step = 1;
  for (const layout::Mode& m : layout::coalesced_modes(l)) {
    out.push_back({m, step});
    step *= m.extent;
  }
  std::stable_sort(out.begin(), out.end(), [](const Placed& x, const Placed& y) {
    return x.mode.stride != y.mode.stride ? x.mode.stride < y.mode.stride
                                          : x.mode.extent > y.mode.extent;
  });
  return out;
}

}  // namespace

Layout right_inverse(const Layout& l) {
  std::vector<layout::Mode> out;
  int64_t next = 1;
  for (const Placed& p : sorted_modes(l)) {
    if (p.mode.stride != next) continue;
    out.push_back({p.mode.extent, p.index_step});
    next *= p.mode.extent;
  }
  return coalesce(layout::from_modes(out));
}

Result<Layout> left_inverse(const Layout& l) {
  const std::vector<Placed> modes = sorted_modes(l);
  const auto refuse = [&](std::string_view why) {
    return error(fail(no_inverse, "{} has no left inverse", to_string(l)).note("{}", why));
  };
  std::vector<layout::Mode> out;
  if (!modes.empty() && modes.front().mode.stride == 0) return refuse("an offset is repeated");
  if (!modes.empty()) out.push_back({modes.front().mode.stride, 0});
  for (std::size_t k = 0; k < modes.size(); ++k) {
    const auto& [extent, stride] = modes[k].mode;
    int64_t room = extent;
    if (k + 1 < modes.size()) {
      const int64_t next = modes[k + 1].mode.stride;
      if (next % stride != 0 || next / stride < extent)
        return refuse(is_injective(l) ? "its modes interleave" : "an offset is repeated");
      room = next / stride;
    }
    out.push_back({room, modes[k].index_step});
  }
  return coalesce(layout::from_modes(out));
}

Result<Layout> inverse(const Layout& l) {
  if (!is_bijective(l)) {
    return error(fail(no_inverse, "{} has no inverse", to_string(l))
                     .expect("every offset below {} once", l.size())
                     .but_found("{} offsets below {}", image_size(l), l.cosize()));
  }
  return right_inverse(l);
}

}  // namespace tessera
