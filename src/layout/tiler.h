// A tiler says which elements of a layout make one tile: one layout for all of its index space, or
// one tiler per mode.
//
//   4:6            every sixth element, four of them
//   <4:1,8:1>      4 along mode 0 and 8 along mode 1: a tile of 4 x 8
//   <4,8>          the same: an extent e is the layout e:1
//   <(2,2):(1,8),8>  rows 0, 1, 8 and 9 of 8 columns
#pragma once

#include "layout/layout.h"

namespace tessera {

class Tiler {
 public:
  /// One layout for the whole index space.
  Tiler(Layout whole) : whole_(std::move(whole)) {}  // NOLINT(google-explicit-constructor)
  /// Mode i of a layout is tiled by modes[i].
  static Tiler by_mode(std::vector<Tiler> modes);
  /// e:1 of an extent e, by mode of a tuple.
  static Tiler of_shape(const IntTuple& shape);

  [[nodiscard]] bool is_by_mode() const { return by_mode_; }
  /// Of a tiler that is not by mode.
  [[nodiscard]] const Layout& whole() const { return whole_; }
  /// Of a tiler by mode.
  [[nodiscard]] const std::vector<Tiler>& modes() const { return modes_; }
  /// The number of elements in a tile.
  [[nodiscard]] int64_t size() const;
  friend bool operator==(const Tiler&, const Tiler&) = default;

 private:
  Layout whole_;
  bool by_mode_ = false;
  std::vector<Tiler> modes_;
};

std::string to_string(const Tiler& t);
/// The inverse of to_string; within <>, an extent e stands for e:1.
Result<Tiler> parse_tiler(std::string_view text);

/// Mode by mode: result.at((c0, c1, ...)) == a.at((t0(c0), t1(c1), ...)). Modes of `a` beyond the
/// tiler's are left out, which leaves them at coordinate 0.
Result<Layout> compose(const Layout& a, const Tiler& t);

/// Each mode of the profile that is a tuple is entered, each that is an integer is one mode that is
/// coalesced by itself: mode i of the result is coalesce(l.mode(i)). The rank stays. Modes beyond
/// the profile stay as they are. Fails when the profile has more modes than the layout.
Result<Layout> coalesce(const Layout& l, const IntTuple& profile);

}  // namespace tessera
