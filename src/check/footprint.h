// Which bytes of shared memory an access touches, and shared memory divided into the largest cells
// that no access touches in part. A run then keeps who wrote and read a cell.
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "arch/wgmma.h"

#include "core/kernel.h"

namespace tessera::check {

/// Bytes [begin, end) from the start of shared memory.
struct Bytes {
  int64_t begin = 0, end = 0;
};

/// The byte of an element; nothing outside of the coordinates' extents.
std::optional<int64_t> byte_of(const core::Shared& s, const std::vector<int64_t>& at);
/// The instruction of a wgmma form; nothing for other forms.
std::optional<arch::Wgmma> wgmma_of(const core::Issue& issue);

class Footprints {
 public:
  using Key = std::vector<int64_t>;
  /// The footprint of a key, by number. A new one is made of `bytes`; its cells are there after the
  /// next divide().
  int get(const Key& key, const std::function<std::vector<Bytes>()>& bytes);
  /// Says of a footprint that each lane of a warp has bytes of its own, and which: by a number.
  void set_lanes(int footprint, uint64_t which);
  /// 0: lanes may share bytes.
  [[nodiscard]] uint64_t lanes(int footprint) const;
  /// True if footprints came since the last divide().
  [[nodiscard]] bool grown() const { return cells_.size() != footprints_.size(); }
  void divide();

  [[nodiscard]] const std::vector<int>& cells(int footprint) const {
    return cells_[static_cast<std::size_t>(footprint)];
  }
  [[nodiscard]] int cell_count() const { return cell_count_; }
  /// The first byte of a cell.
  [[nodiscard]] int64_t byte(int cell) const { return first_[static_cast<std::size_t>(cell)]; }

 private:
  struct Hash {
    std::size_t operator()(const Key& k) const;
  };
  std::unordered_map<Key, int, Hash> known_;
  std::vector<std::vector<Bytes>> footprints_;
  std::unordered_map<int, uint64_t> lanes_;
  std::vector<std::vector<int>> cells_;
  std::vector<int64_t> first_;
  int cell_count_ = 0;
};

/// Tells the bytes of each lane, in their order, by a number; 0 where two lanes share some.
uint64_t lanes_of(std::vector<Bytes> by_lane);

/// Bytes of the matrix that starts at `at`: rows x columns of the last two modes.
std::vector<Bytes> matrix_bytes(const core::Shared& s, std::vector<int64_t> at, int64_t rows,
                                int64_t columns);

}  // namespace tessera::check
