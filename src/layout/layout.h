// A layout is a function from coordinates to offsets, written shape:stride.
//
//   (4,(2,3)):(1,(12,4))     coordinate (i,(j,k))  ->  1*i + 12*j + 4*k
//
// Any coordinate is also one integer, counted with the FIRST mode fastest (colexicographic, as in
// CuTe): index 5 of the shape (4,6) is the coordinate (1,1). So a layout is a function on
// [0, size). Three things follow:
//
// Composition: layout_a(layout_b(i)) is again a layout. A thread-to-element map composed with an
// element-to-address map is a thread-to-address map.
//
// Views: a transpose, a broadcast (stride 0), a slice or grouped heads is a layout on the same
// storage, nothing else.
//
// Equality: two layouts are the same access when they agree on every index; `coalesce` is a normal
// form for that.
//
// docs/layouts.md has the operations with their laws.
//
// Layouts are values. Construction checks that shape and stride have the same nesting and that
// extents are positive; `try_layout` is the polite path, `Layout(...)` throws on a bug of ours.
#pragma once

#include <optional>

#include "layout/int_tuple.h"

namespace tessera {

class Layout {
 public:
  Layout() : shape_(1), stride_(0) {}
  Layout(IntTuple shape, IntTuple stride);
  /// Compact strides, first mode fastest.
  static Layout column_major(const IntTuple& shape);

  [[nodiscard]] const IntTuple& shape() const { return shape_; }
  [[nodiscard]] const IntTuple& stride() const { return stride_; }
  [[nodiscard]] int rank() const { return shape_.rank(); }
  [[nodiscard]] Layout mode(int i) const { return {shape_.mode(i), stride_.mode(i)}; }
  [[nodiscard]] int64_t size() const { return product(shape_); }
  /// One past the largest offset (negative strides do not occur: a view starts at its lowest
  /// element).
  [[nodiscard]] int64_t cosize() const;
  /// The offset of a coordinate given as one integer in [0, size).
  [[nodiscard]] int64_t operator()(int64_t index) const;
  /// The offset of a coordinate with one integer a top-level mode.
  [[nodiscard]] int64_t at(const std::vector<int64_t>& coordinate) const;

  friend bool operator==(const Layout&, const Layout&) = default;

 private:
  IntTuple shape_;
  IntTuple stride_;
};

Result<Layout> try_layout(IntTuple shape, IntTuple stride);
std::string to_string(const Layout& l);
/// The inverse of to_string; a missing stride means compact, first mode fastest.
Result<Layout> parse_layout(std::string_view text);

/// Modes side by side: (a, b, ...).
Layout concat(const std::vector<Layout>& modes);

/// Fewest flat modes with result(i) == l(i) for all i in [0, size): size-1 modes dropped,
/// contiguous modes merged.
Layout coalesce(const Layout& l);

/// result(i) == a(b(i)) for all i < size(b); each leaf of b's shape becomes a mode of the result,
/// so that coordinates of b stay coordinates of it. Fails when b leaves the domain of a, or when no
/// such layout exists. Where b's strides and extents divide a's extents, that is decided by the
/// modes; else by enumeration, of at most 2^20 elements.
Result<Layout> compose(const Layout& a, const Layout& b);

/// No two indices share an offset. Decided exactly (injective.cpp).
bool is_injective(const Layout& l);

}  // namespace tessera
