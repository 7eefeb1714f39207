#include "layout/swizzle.h"

#include "layout/int_tuple.h"

namespace tessera {
namespace {
constexpr Code bad_swizzle{"TS0105", "layout.bad_swizzle"};
}

Result<Swizzle> try_swizzle(int bits, int base, int shift) {
  if (bits < 0 || base < 0 || shift < bits || bits + base + shift > 62) {
    return error(fail(bad_swizzle, "swizzle({},{},{}) is not possible", bits, base, shift)
                     .expect("bits >= 0, base >= 0, shift >= bits"));
  }
  return Swizzle{bits, base, shift};
}

std::string to_string(const Swizzle& s) {
  return fmt::format("swizzle({},{},{})", s.bits, s.base, s.shift);
}

Result<Swizzle> parse_swizzle(std::string_view text) {
  constexpr std::string_view head = "swizzle";
  if (!text.starts_with(head)) return error(fail(bad_swizzle, "not a swizzle: `{}`", text));
  text.remove_prefix(head.size());
  TESSERA_TRY(t, parse_int_tuple(text));
  std::vector<int64_t> v = flatten(t);
  if (v.size() != 3 || !text.empty())
    return error(fail(bad_swizzle, "a swizzle has three numbers, found {}", to_string(t)));
  return try_swizzle(static_cast<int>(v[0]), static_cast<int>(v[1]), static_cast<int>(v[2]));
}

}  // namespace tessera
