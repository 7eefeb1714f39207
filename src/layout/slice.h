// Fixing some modes of a layout: the slice keeps the others, the dice keeps the fixed ones.
//
//   slice((_,3), (4,8):(8,1))   4:8 at offset 3      column 3 of a 4 x 8 row-major matrix
//   dice((_,3), (4,8):(8,1))    8:1                  the modes that 3 was chosen from
#pragma once

#include <optional>

#include "layout/layout.h"

namespace tessera {

/// A coordinate with holes. A leaf is `_` (a hole), or an index into the mode at its place; a tuple
/// has one coordinate per mode.
struct Coordinate {
  bool is_leaf = true;
  std::optional<int64_t> index;  // of a leaf; nothing is `_`
  std::vector<Coordinate> items;

  Coordinate() = default;
  Coordinate(int64_t at) : index(at) {}  // NOLINT(google-explicit-constructor)
  static Coordinate tuple(std::vector<Coordinate> items);
  friend bool operator==(const Coordinate&, const Coordinate&) = default;
};

std::string to_string(const Coordinate& c);
/// The inverse of to_string: (_,(2,_)).
Result<Coordinate> parse_coordinate(std::string_view text);

/// offset + layout(i).
struct Slice {
  Layout layout;
  int64_t offset = 0;
};

/// l with the indexed modes fixed. `_` for the whole of `l` keeps it; of a tuple, the kept modes
/// become the modes of the result, nested tuples dissolved: (_,(2,_)) keeps two modes. With nothing
/// kept the layout is (), of size 1. Fails when the coordinate is nested deeper than the layout,
/// has another number of modes, or an index outside of its mode.
Result<Slice> slice(const Coordinate& c, const Layout& l);

/// The modes that the coordinate has an index for, in the same form; fails as slice does.
Result<Layout> dice(const Coordinate& c, const Layout& l);

}  // namespace tessera
