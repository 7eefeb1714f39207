// A swizzled layout is the function i -> swizzle(offset + layout(i)), as a value.
//
//   swizzle(3,3,3) o 0 o (8,64):(64,1)    8 rows of 64 16-bit elements in a 128-byte swizzle
//
// What acts on indices acts on the layout within: composition with a layout on the right, division,
// slices. The offset stays within the swizzle, because the swizzle of a sum is not the sum of the
// swizzles; split.h says when it is. Swizzle and offset count elements, as the layout does.
#pragma once

#include "layout/divide.h"
#include "layout/slice.h"
#include "layout/swizzle.h"

namespace tessera {

class SwizzledLayout {
 public:
  SwizzledLayout() = default;
  SwizzledLayout(Layout layout)  // NOLINT(google-explicit-constructor): an identity swizzle
      : layout_(std::move(layout)) {}
  /// The offset is at least 0; anything else is a fault of the caller and throws.
  SwizzledLayout(Swizzle swizzle, int64_t offset, Layout layout);

  [[nodiscard]] const Swizzle& swizzle() const { return swizzle_; }
  [[nodiscard]] int64_t offset() const { return offset_; }
  [[nodiscard]] const Layout& layout() const { return layout_; }
  [[nodiscard]] int rank() const { return layout_.rank(); }
  [[nodiscard]] int64_t size() const { return layout_.size(); }
  [[nodiscard]] SwizzledLayout mode(int i) const { return {swizzle_, offset_, layout_.mode(i)}; }
  [[nodiscard]] int64_t operator()(int64_t index) const {
    return swizzle_(offset_ + layout_(index));
  }
  /// The offset of a coordinate with one integer a top-level mode.
  [[nodiscard]] int64_t at(const std::vector<int64_t>& coordinate) const {
    return swizzle_(offset_ + layout_.at(coordinate));
  }
  /// Same parts. Different parts may be the same function: same_function tells.
  friend bool operator==(const SwizzledLayout&, const SwizzledLayout&) = default;

 private:
  Swizzle swizzle_;
  int64_t offset_ = 0;
  Layout layout_;
};

std::string to_string(const SwizzledLayout& l);
/// The inverse of to_string; a layout alone has no swizzle and offset 0.
Result<SwizzledLayout> parse_swizzled_layout(std::string_view text);

/// As many elements, each at the same offset. Decided by matrices over F2 where both are such
/// (f2_view.h), else by enumeration.
bool same_function(const SwizzledLayout& a, const SwizzledLayout& b);

/// result(i) == s(a(i)).
SwizzledLayout compose(const Swizzle& s, const Layout& a);
/// result(i) == a(b(i)); fails where the composition of the layouts does.
Result<SwizzledLayout> compose(const SwizzledLayout& a, const Layout& b);
/// Mode by mode.
Result<SwizzledLayout> compose(const SwizzledLayout& a, const Tiler& t);
/// The same function on as few modes as the layout within allows.
SwizzledLayout coalesce(const SwizzledLayout& l);

Result<SwizzledLayout> logical_divide(const SwizzledLayout& a, const Tiler& tiler);
Result<SwizzledLayout> zipped_divide(const SwizzledLayout& a, const Tiler& tiler);
Result<SwizzledLayout> tiled_divide(const SwizzledLayout& a, const Tiler& tiler);
Result<SwizzledLayout> flat_divide(const SwizzledLayout& a, const Tiler& tiler);

/// The indexed modes fixed, their offset within the swizzle.
Result<SwizzledLayout> slice(const Coordinate& c, const SwizzledLayout& l);

/// A layout of elements of `from` bits seen as one of elements of `to` bits (recast.h). Fails,
/// besides, when the swizzle moves parts of a wide element apart, when the factor is not a power of
/// two, or when the offset is not that of a wide element.
Result<SwizzledLayout> recast(const SwizzledLayout& l, int64_t from, int64_t to);

/// The same function without a swizzle, offset + layout(i), where there is one: a slice that fixes
/// all bits that the swizzle reads has one often. Fails when there is none, or for more than 2^20
/// elements.
Result<Slice> without_swizzle(const SwizzledLayout& l);

}  // namespace tessera
