#include "layout/tiler.h"

#include "layout/modes.h"

namespace tessera {
namespace {

constexpr Code bad_tiler{"TS0107", "layout.bad_tiler"};

/// The part of `text` before the `,` or `>` that ends a mode; removed from it.
std::string_view take_mode(std::string_view& text) {
  int depth = 0;
  std::size_t end = 0;
  for (; end < text.size(); ++end) {
    const char c = text[end];
    if (depth == 0 && (c == ',' || c == '>')) break;
    if (c == '(' || c == '<') ++depth;
    if (c == ')' || c == '>') --depth;
  }
  const std::string_view mode = text.substr(0, end);
  text.remove_prefix(end);
  return mode;
}

}  // namespace

Tiler Tiler::by_mode(std::vector<Tiler> modes) {
  Tiler t{Layout()};
  t.by_mode_ = true;
  t.modes_ = std::move(modes);
  return t;
}

Tiler Tiler::of_shape(const IntTuple& shape) {
  if (shape.is_leaf) return Layout(shape.value, 1);
  std::vector<Tiler> modes;
  for (const IntTuple& i : shape.items) modes.push_back(of_shape(i));
  return by_mode(std::move(modes));
}

int64_t Tiler::size() const {
  if (!by_mode_) return whole_.size();
  int64_t n = 1;
  for (const Tiler& t : modes_) n *= t.size();
  return n;
}

std::string to_string(const Tiler& t) {
  if (!t.is_by_mode()) return to_string(t.whole());
  std::string s = "<";
  for (const Tiler& m : t.modes()) s += (s.size() > 1 ? "," : "") + to_string(m);
  return s + ">";
}

Result<Tiler> parse_tiler(std::string_view text) {
  if (!text.starts_with('<')) {
    TESSERA_TRY(whole, parse_layout(text));
    return Tiler(std::move(whole));
  }
  const std::string_view all = text;
  text.remove_prefix(1);
  std::vector<Tiler> modes;
  while (!text.empty() && text != ">") {
    TESSERA_TRY(mode, parse_tiler(take_mode(text)));
    modes.push_back(std::move(mode));
    if (text.starts_with(',')) text.remove_prefix(1);
  }
  if (text != ">")
    return error(fail(bad_tiler, "not a tiler: `{}`", all).expect("<layout,layout,...>"));
  return Tiler::by_mode(std::move(modes));
}

Result<Layout> compose(const Layout& a, const Tiler& t) {
  if (!t.is_by_mode()) return compose(a, t.whole());
  if (static_cast<int>(t.modes().size()) > a.rank()) {
    return error(fail(bad_tiler, "a tiler has more modes than its layout")
                     .expect("at most {}", a.rank())
                     .but_found("{}", to_string(t)));
  }
  std::vector<Layout> modes;
  for (std::size_t i = 0; i < t.modes().size(); ++i) {
    TESSERA_TRY(m, compose(a.mode(static_cast<int>(i)), t.modes()[i]));
    modes.push_back(std::move(m));
  }
  return concat(modes);
}

Result<Layout> coalesce(const Layout& l, const IntTuple& profile) {
  if (profile.is_leaf) return coalesce(l);
  if (profile.rank() > l.rank()) {
    return error(fail(bad_tiler, "a profile has more modes than its layout")
                     .expect("at most {}", l.rank())
                     .but_found("{}", to_string(profile)));
  }
  std::vector<Layout> modes;
  for (int i = 0; i < l.rank(); ++i) {
    if (i >= profile.rank()) {
      modes.push_back(l.mode(i));
      continue;
    }
    TESSERA_TRY(m, coalesce(l.mode(i), profile.mode(i)));
    modes.push_back(std::move(m));
  }
  return concat(modes);
}

}  // namespace tessera
