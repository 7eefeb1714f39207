#include "tile/type.h"

#include <stdexcept>

namespace tessera::tile {
namespace {
constexpr Code bad_type{"TS0412", "tile.bad_type"};

std::vector<int64_t> row_major_strides(const std::vector<int64_t>& cover) {
  std::vector<int64_t> s(cover.size(), 1);
  for (std::size_t i = cover.size(); i-- > 1;) s[i - 1] = s[i] * cover[i];
  return s;
}

Result<std::vector<SpreadMode>> modes_of(const Layout& l, const std::vector<int64_t>& cover) {
  std::vector<int64_t> axis_stride = row_major_strides(cover);
  std::vector<int64_t> extents = flatten(l.shape());
  std::vector<int64_t> strides = flatten(l.stride());
  std::vector<SpreadMode> out;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    SpreadMode m{.extent = extents[i]};
    if (extents[i] == 1) continue;
    if (strides[i] != 0) {
      for (std::size_t a = 0; a < cover.size() && m.axis < 0; ++a)
        if (cover[a] > 1 && strides[i] >= axis_stride[a]) m.axis = static_cast<int>(a);
      if (m.axis >= 0) m.step = strides[i] / axis_stride[m.axis];
      if (m.axis < 0 || strides[i] % axis_stride[m.axis] != 0 ||
          (m.extent - 1) * m.step >= cover[m.axis]) {
        return error(fail(bad_type, "mode {}:{} of {} runs across two axes", extents[i], strides[i],
                          to_string(l)));
      }
    }
    out.push_back(m);
  }
  return out;
}
}  // namespace

Result<Spread> try_spread(const Type& t) {
  TESSERA_TRY(threads, modes_of(t.layout.mode(0), t.cover));
  TESSERA_TRY(registers, modes_of(t.layout.mode(1), t.cover));
  return Spread{std::move(threads), std::move(registers)};
}

Spread spread(const Type& t) {
  Result<Spread> s = try_spread(t);
  if (!s) throw std::logic_error(s.error().message);
  return *s;
}

Layout layout_of(const Spread& s, const std::vector<int64_t>& cover) {
  std::vector<int64_t> axis_stride = row_major_strides(cover);
  auto one = [&](const std::vector<SpreadMode>& modes) -> Layout {
    std::vector<Layout> parts;
    for (const SpreadMode& m : modes)
      parts.emplace_back(m.extent, m.axis < 0 ? 0 : m.step * axis_stride[m.axis]);
    if (parts.empty()) return {1, 0};
    return parts.size() == 1 ? parts[0] : concat(parts);
  };
  return concat({one(s.threads), one(s.registers)});
}

std::vector<int64_t> coordinate(const Type& t, int64_t thread, int64_t reg) {
  int64_t index = t.layout.at({thread, reg});
  std::vector<int64_t> c(t.cover.size());
  for (std::size_t a = c.size(); a-- > 0; index /= t.cover[a]) c[a] = index % t.cover[a];
  return c;
}

Result<Type> try_register_type(DType element, std::vector<Axis> axes, std::vector<int64_t> cover,
                               Layout layout) {
  Type t{element, Space::registers, std::move(axes), std::move(cover), std::move(layout)};
  int64_t covered = 1;
  if (t.axes.size() != t.cover.size() || t.layout.rank() != 2)
    return error(fail(bad_type, "axes, cover and layout do not fit each other"));
  for (std::size_t a = 0; a < t.axes.size(); ++a) {
    if (t.cover[a] < t.axes[a].extent)
      return error(fail(bad_type, "the cover of axis {} is {}, its extent {}", a, t.cover[a],
                        t.axes[a].extent));
    covered *= t.cover[a];
  }
  TESSERA_TRY(s, try_spread(t));
  std::vector<bool> seen(covered);
  int64_t found = 0;
  for (int64_t i = 0; i < t.layout.size(); ++i) {
    int64_t at = t.layout(i);
    if (at < covered && !seen[at]) seen[at] = true, ++found;
  }
  if (found != covered)
    return error(fail(bad_type, "{} of {} elements of the cover have a slot in {}", found, covered,
                      to_string(t.layout)));
  return t;
}

std::string to_string(const Type& t) {
  std::string s = std::string(short_name(t.element)) + "[";
  for (std::size_t a = 0; a < t.axes.size(); ++a)
    s += (a ? "," : "") + std::to_string(t.axes[a].extent);
  return s + "]";
}

}  // namespace tessera::tile
