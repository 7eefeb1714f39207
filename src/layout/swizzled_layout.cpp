#include "layout/swizzled_layout.h"

#include <bit>
#include <cassert>
#include <charconv>
#include <numeric>
#include <stdexcept>

#include "layout/f2_view.h"
#include "layout/fit.h"
#include "layout/modes.h"
#include "layout/recast.h"

namespace tessera {
namespace {

constexpr Code bad_swizzled{"TS0110", "layout.bad_swizzled_layout"};
constexpr std::string_view joint = " o ";

/// `inner`, which acts on the layout within, brought back under swizzle and offset.
Result<SwizzledLayout> around(const SwizzledLayout& of, Result<Layout> inner) {
  if (!inner) return error(std::move(inner).error());
  return SwizzledLayout(of.swizzle(), of.offset(), *std::move(inner));
}

}  // namespace

SwizzledLayout::SwizzledLayout(Swizzle swizzle, int64_t offset, Layout layout)
    : swizzle_(swizzle), offset_(offset), layout_(std::move(layout)) {
  if (offset < 0) throw std::logic_error("the offset of a swizzled layout is negative");
}

std::string to_string(const SwizzledLayout& l) {
  return fmt::format("{}{}{}{}{}", to_string(l.swizzle()), joint, l.offset(), joint,
                     to_string(l.layout()));
}

Result<SwizzledLayout> parse_swizzled_layout(std::string_view text) {
  if (!text.starts_with("swizzle")) {
    TESSERA_TRY(plain, parse_layout(text));
    return SwizzledLayout(std::move(plain));
  }
  const std::size_t first = text.find(joint);
  const std::size_t second =
      first == text.npos ? text.npos : text.find(joint, first + joint.size());
  int64_t offset = -1;
  if (second != text.npos) {
    const char* end = text.data() + second;
    const auto [last, failed] = std::from_chars(text.data() + first + joint.size(), end, offset);
    if (failed != std::errc() || last != end) offset = -1;
  }
  if (offset < 0) {
    return error(fail(bad_swizzled, "not a swizzled layout: `{}`", text)
                     .expect("swizzle(B,M,S) o offset o shape:stride"));
  }
  TESSERA_TRY(swizzle, parse_swizzle(text.substr(0, first)));
  TESSERA_TRY(layout, parse_layout(text.substr(second + joint.size())));
  return SwizzledLayout(swizzle, offset, std::move(layout));
}

bool same_function(const SwizzledLayout& a, const SwizzledLayout& b) {
  if (a.size() != b.size()) return false;
  if (coalesce(a) == coalesce(b)) return true;
  const Result<F2View> x = to_f2(a);
  const Result<F2View> y = to_f2(b);
  if (x && y) return *x == *y;
  for (int64_t i = 0; i < a.size(); ++i)
    if (a(i) != b(i)) return false;
  return true;
}

SwizzledLayout compose(const Swizzle& s, const Layout& a) {
  return {s, 0, a};
}
Result<SwizzledLayout> compose(const SwizzledLayout& a, const Layout& b) {
  return around(a, compose(a.layout(), b));
}
Result<SwizzledLayout> compose(const SwizzledLayout& a, const Tiler& t) {
  return around(a, compose(a.layout(), t));
}
SwizzledLayout coalesce(const SwizzledLayout& l) {
  return {l.swizzle(), l.offset(), coalesce(l.layout())};
}

Result<SwizzledLayout> logical_divide(const SwizzledLayout& a, const Tiler& tiler) {
  return around(a, logical_divide(a.layout(), tiler));
}
Result<SwizzledLayout> zipped_divide(const SwizzledLayout& a, const Tiler& tiler) {
  return around(a, zipped_divide(a.layout(), tiler));
}
Result<SwizzledLayout> tiled_divide(const SwizzledLayout& a, const Tiler& tiler) {
  return around(a, tiled_divide(a.layout(), tiler));
}
Result<SwizzledLayout> flat_divide(const SwizzledLayout& a, const Tiler& tiler) {
  return around(a, flat_divide(a.layout(), tiler));
}

Result<SwizzledLayout> slice(const Coordinate& c, const SwizzledLayout& l) {
  TESSERA_TRY(inner, slice(c, l.layout()));
  return SwizzledLayout(l.swizzle(), l.offset() + inner.offset, std::move(inner.layout));
}

Result<SwizzledLayout> recast(const SwizzledLayout& l, int64_t from, int64_t to) {
  TESSERA_TRY(inner, recast(l.layout(), from, to));
  assert(from >= 1 && to >= 1);  // else the layout within is refused
  const int64_t common = std::gcd(from, to);
  const auto down = static_cast<uint64_t>(from / common);
  const auto up = static_cast<uint64_t>(to / common);
  const auto refuse = [&](std::string_view why) {
    return error(
        fail(layout::bad_recast, "{} cannot be seen as elements of {} bits", to_string(l), to)
            .note("{}", why));
  };
  const int64_t offset = l.offset() * static_cast<int64_t>(down);
  if (offset % static_cast<int64_t>(up) != 0) return refuse("it begins within a wide element");
  Swizzle s = l.swizzle();
  if (s.bits > 0) {
    if (!std::has_single_bit(down) || !std::has_single_bit(up))
      return refuse("a swizzle acts on powers of two");
    s.base += std::countr_zero(down) - std::countr_zero(up);
    if (s.base < 0) return refuse("its swizzle moves parts of a wide element apart");
  }
  return SwizzledLayout(s, offset / static_cast<int64_t>(up), std::move(inner));
}

Result<Slice> without_swizzle(const SwizzledLayout& l) {
  const int64_t first = l(0);
  const auto refuse = [&](std::string_view why) {
    return error(
        fail(bad_swizzled, "{} is no layout without its swizzle", to_string(l)).note("{}", why));
  };
  if (l.swizzle().bits == 0) return Slice{l.layout(), first};
  if (l.size() > layout::most_enumerated) return refuse("too large for a search of all elements");
  const auto plain = layout::fit(l.layout().shape(), [&](int64_t i) { return l(i) - first; });
  if (!plain) return refuse("offsets are not sums of strides");
  return Slice{*plain, first};
}

}  // namespace tessera
