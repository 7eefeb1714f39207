#include "layout/int_tuple.h"

#include <charconv>

namespace tessera {
namespace {
constexpr Code bad_tuple{"TS0101", "layout.bad_tuple"};
}

int64_t product(const IntTuple& t) {
  if (t.is_leaf) return t.value;
  int64_t p = 1;
  for (const IntTuple& i : t.items) p *= product(i);
  return p;
}

std::vector<int64_t> flatten(const IntTuple& t) {
  if (t.is_leaf) return {t.value};
  std::vector<int64_t> out;
  for (const IntTuple& i : t.items)
    for (int64_t v : flatten(i)) out.push_back(v);
  return out;
}

bool congruent(const IntTuple& a, const IntTuple& b) {
  if (a.is_leaf || b.is_leaf) return a.is_leaf == b.is_leaf;
  if (a.items.size() != b.items.size()) return false;
  for (std::size_t i = 0; i < a.items.size(); ++i)
    if (!congruent(a.items[i], b.items[i])) return false;
  return true;
}

std::string to_string(const IntTuple& t) {
  if (t.is_leaf) return std::to_string(t.value);
  std::string s = "(";
  for (std::size_t i = 0; i < t.items.size(); ++i) s += (i ? "," : "") + to_string(t.items[i]);
  return s + ")";
}

Result<IntTuple> parse_int_tuple(std::string_view& text) {
  auto skip = [&] {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  };
  skip();
  if (!text.empty() && text.front() == '(') {
    text.remove_prefix(1);
    std::vector<IntTuple> items;
    for (skip(); !text.empty() && text.front() != ')'; skip()) {
      TESSERA_TRY(item, parse_int_tuple(text));
      items.push_back(std::move(item));
      skip();
      if (!text.empty() && text.front() == ',') text.remove_prefix(1);
    }
    if (text.empty())
      return error(fail(bad_tuple, "a tuple of integers is not closed").expect(")"));
    text.remove_prefix(1);
    return IntTuple::tuple(std::move(items));
  }
  int64_t v = 0;
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (ec != std::errc()) {
    return error(fail(bad_tuple, "not a tuple of integers")
                     .expect("an integer or (")
                     .but_found("`{}`", std::string(text.substr(0, 16))));
  }
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return IntTuple(v);
}

}  // namespace tessera
