// A layout whose extents and strides may depend on parameters: a tensor (M,K):(K,1) in global
// memory, and what tiles of constant shape make of it.
//
//   zipped_divide((M,K):(K,1), <128:1,64:1>)
//     ((128,64),({M/128},{K/64})):((K,1),(128*K,64))        M a multiple of 128, K one of 64
//   its slice at ((_,_),(m,k))
//     ((128,64)):((K,1)) at offset 128*K*m + 64*k           for any block (m,k)
//
// Limits. Coordinates have an entry per leaf: as extents are unknown, an index cannot be taken
// apart into coordinates. So tilers act on modes that are leaves, one tiler per mode; there is no
// composition across two symbolic modes, no coalescing and no inverse. Tiles are constant layouts;
// their strides may become symbolic. Once all is known (`evaluate`), so is the rest of the algebra.
#pragma once

#include <optional>

#include "layout/extent.h"
#include "layout/tiler.h"

namespace tessera {

class SymbolicLayout {
 public:
  /// A leaf.
  SymbolicLayout(Extent extent, Extent stride)
      : extent_(std::move(extent)), stride_(std::move(stride)) {}
  /// A constant layout.
  SymbolicLayout(const Layout& l);  // NOLINT(google-explicit-constructor)
  /// Modes side by side.
  static SymbolicLayout tuple(std::vector<SymbolicLayout> modes);
  /// Compact strides, last mode fastest.
  static SymbolicLayout row_major(const std::vector<Extent>& extents);

  [[nodiscard]] bool is_leaf() const { return is_leaf_; }
  /// Of a leaf.
  [[nodiscard]] const Extent& extent() const { return extent_; }
  [[nodiscard]] const Extent& stride() const { return stride_; }
  /// A leaf has rank 1 and is its own mode 0.
  [[nodiscard]] int rank() const { return is_leaf_ ? 1 : static_cast<int>(modes_.size()); }
  [[nodiscard]] const SymbolicLayout& mode(int i) const { return is_leaf_ ? *this : modes_.at(i); }
  [[nodiscard]] Extent size() const;
  /// The offset of a coordinate with one entry per leaf, from left to right; entries may be
  /// symbolic.
  [[nodiscard]] Extent at(const std::vector<Extent>& leaves) const;
  /// The layout with every parameter given. Fails as Extent::evaluate does, and when an extent is
  /// not above 0.
  [[nodiscard]] Result<Layout> evaluate(const std::map<std::string, int64_t>& parameters) const;
  friend bool operator==(const SymbolicLayout&, const SymbolicLayout&) = default;

 private:
  SymbolicLayout() = default;

  bool is_leaf_ = true;
  Extent extent_, stride_;
  std::vector<SymbolicLayout> modes_;
};

/// shape:stride, as of a layout.
std::string to_string(const SymbolicLayout& l);

/// offset + layout(kept entries).
struct SymbolicSlice {
  SymbolicLayout layout;
  Extent offset;
};

/// The leaves with an entry fixed, those without kept: `leaves` has one per leaf, from left to
/// right. Tuples of which nothing is kept are left out, others keep their nesting.
SymbolicSlice slice(const SymbolicLayout& l, const std::vector<std::optional<Extent>>& leaves);

/// What to do with a mode that a tile does not divide, or is not known to.
enum class Tail {
  refuse,  // fail
  cover,   // count the tile that is begun: the last one reaches past the extent and must be masked
};

/// Mode by mode: the elements that a tile takes of each mode. Fails when a constant extent is
/// shorter than its tile, or the tiler has another number of modes; an unknown extent is taken to
/// be long enough, which the caller has to mask or to ensure.
Result<SymbolicLayout> compose(const SymbolicLayout& a, const Tiler& t);

/// ((tile0,tile1,...),(rest0,rest1,...)): as of constant layouts, modes beyond the tiler's last.
Result<SymbolicLayout> zipped_divide(const SymbolicLayout& a, const Tiler& t,
                                     Tail tail = Tail::refuse);

}  // namespace tessera
