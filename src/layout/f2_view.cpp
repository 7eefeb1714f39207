#include "layout/f2_view.h"

#include <bit>

#include "layout/modes.h"

namespace tessera {
namespace {

constexpr Code not_linear{"TS0111", "layout.not_linear"};

/// No bit is set in two columns.
bool disjoint(const F2Matrix& m) {
  uint64_t seen = 0;
  for (uint64_t c : m.columns) {
    if ((seen & c) != 0) return false;
    seen |= c;
  }
  return true;
}

/// A swizzle is linear, so it acts on columns and constant alike.
F2View swizzled(const Swizzle& s, F2View v) {
  const auto move = [&](uint64_t x) { return static_cast<uint64_t>(s(static_cast<int64_t>(x))); };
  for (uint64_t& c : v.matrix.columns) c = move(c);
  v.constant = move(v.constant);
  return v;
}

}  // namespace

Result<F2View> to_f2(const SwizzledLayout& l) {
  const auto offset = static_cast<uint64_t>(l.offset());
  F2View v{{}, offset};
  for (const layout::Mode& m : layout::flat_modes(l.layout())) {
    const auto extent = static_cast<uint64_t>(m.extent);
    if (!std::has_single_bit(extent)) {
      return error(fail(not_linear, "{} is not linear over F2", to_string(l))
                       .expect("extents that are powers of two")
                       .but_found("{}", m.extent));
    }
    for (uint64_t i = 1; i < extent; i *= 2)
      v.matrix.columns.push_back((offset + i * static_cast<uint64_t>(m.stride)) ^ offset);
  }
  // (offset + a + b) ^ offset is the XOR of (offset + a) ^ offset and (offset + b) ^ offset just
  // when these share no bit.
  if (!disjoint(v.matrix)) {
    return error(fail(not_linear, "{} is not linear over F2", to_string(l))
                     .note("sums of its strides carry"));
  }
  return swizzled(l.swizzle(), std::move(v));
}

Result<Slice> from_f2(const F2View& v) {
  const auto refuse = [&](std::string_view why) {
    return error(
        fail(not_linear, "no layout is the matrix {}", to_string(v.matrix)).note("{}", why));
  };
  if (!disjoint(v.matrix)) return refuse("columns share a bit");
  std::vector<layout::Mode> modes;
  for (uint64_t c : v.matrix.columns) {
    const auto stride = static_cast<int64_t>(c ^ v.constant) - static_cast<int64_t>(v.constant);
    if (stride < 0) return refuse("a stride is negative");
    modes.push_back({2, stride});
  }
  return Slice{coalesce(layout::from_modes(modes)), static_cast<int64_t>(v.constant)};
}

Result<SwizzledLayout> from_f2_swizzled(const F2View& v) {
  const int rows = std::max(v.matrix.outputs(), static_cast<int>(std::bit_width(v.constant)));
  for (int bits = 0; 2 * bits <= rows; ++bits)
    for (int base = 0; base + 2 * bits <= rows; ++base)
      for (int shift = bits; base + shift + bits <= rows; ++shift) {
        const Swizzle s{bits, base, shift};
        // A swizzle undoes itself.
        const Result<Slice> plain = from_f2(swizzled(s, v));
        if (plain) return SwizzledLayout(s, plain->offset, plain->layout);
      }
  return error(fail(not_linear, "no swizzled layout is the matrix {}", to_string(v.matrix)));
}

}  // namespace tessera
