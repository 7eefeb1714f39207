#include "layout/slice.h"

#include <charconv>

#include "layout/modes.h"

namespace tessera {
namespace {

constexpr Code bad_coordinate{"TS0108", "layout.bad_coordinate"};

struct Parts {
  std::vector<Layout> kept, fixed;
  int64_t offset = 0;
};

Status part(const Coordinate& c, const Layout& l, Parts& out) {
  const auto refuse = [&] {
    return error(fail(bad_coordinate, "{} is no coordinate of {}", to_string(c), to_string(l)));
  };
  if (c.is_leaf) {
    if (c.index && (*c.index < 0 || *c.index >= l.size())) return refuse();
    (c.index ? out.fixed : out.kept).push_back(l);
    if (c.index) out.offset += l(*c.index);
    return {};
  }
  if (l.shape().is_leaf || static_cast<int>(c.items.size()) != l.rank()) return refuse();
  for (int i = 0; i < l.rank(); ++i) TESSERA_CHECK(part(c.items[i], l.mode(i), out));
  return {};
}

Result<Coordinate> parse(std::string_view& text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  if (text.starts_with('_')) {
    text.remove_prefix(1);
    return Coordinate();
  }
  if (!text.starts_with('(')) {
    int64_t v = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), v);
    if (failed != std::errc())
      return error(fail(bad_coordinate, "not a coordinate: `{}`", text)
                       .expect("`_`, an integer or a tuple of them"));
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return Coordinate(v);
  }
  text.remove_prefix(1);
  std::vector<Coordinate> items;
  while (!text.empty() && text.front() != ')') {
    TESSERA_TRY(item, parse(text));
    items.push_back(std::move(item));
    if (text.starts_with(',')) text.remove_prefix(1);
  }
  if (text.empty()) return error(fail(bad_coordinate, "a coordinate is not closed").expect(")"));
  text.remove_prefix(1);
  return Coordinate::tuple(std::move(items));
}

}  // namespace

Coordinate Coordinate::tuple(std::vector<Coordinate> items) {
  Coordinate c;
  c.is_leaf = false;
  c.items = std::move(items);
  return c;
}

std::string to_string(const Coordinate& c) {
  if (c.is_leaf) return c.index ? std::to_string(*c.index) : "_";
  std::string s = "(";
  for (std::size_t i = 0; i < c.items.size(); ++i) s += (i ? "," : "") + to_string(c.items[i]);
  return s + ")";
}

Result<Coordinate> parse_coordinate(std::string_view text) {
  TESSERA_TRY(c, parse(text));
  if (!text.empty()) return error(fail(bad_coordinate, "text after a coordinate: `{}`", text));
  return c;
}

Result<Slice> slice(const Coordinate& c, const Layout& l) {
  Parts parts;
  TESSERA_CHECK(part(c, l, parts));
  if (c.is_leaf && !c.index) return Slice{l, 0};
  return Slice{concat(parts.kept), parts.offset};
}

Result<Layout> dice(const Coordinate& c, const Layout& l) {
  Parts parts;
  TESSERA_CHECK(part(c, l, parts));
  if (c.is_leaf && c.index) return l;
  return concat(parts.fixed);
}

}  // namespace tessera
