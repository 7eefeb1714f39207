// Who read and wrote each piece of a memory last: races, missing proxy fences, values that nobody
// wrote.
//
// A piece is `unit` bytes, a divisor of every access's start and length. A piece keeps its last
// write and the reads since then that no later read is known to follow.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "simulate/clock.h"

namespace tessera::simulate {

/// One party's access, as others must have seen it.
struct Mark {
  static constexpr uint32_t nobody = ~0U;
  uint32_t component = nobody;
  uint32_t clock = 0;
  uint32_t event = 0;  // of the machine's log
  bool async = false;  // by the async proxy
  bool atomic = false;
};

struct Conflict {
  enum class Kind : uint8_t { race, proxy, uninitialized };
  Kind kind = Kind::race;
  Mark earlier;
  bool earlier_writes = false;
  int64_t byte = 0;
};

class Shadow {
 public:
  Shadow() = default;
  /// `written`: everything has a value from the start.
  Shadow(int64_t bytes, int64_t unit, bool global, bool written);

  /// The first conflict of an access of [begin, begin + bytes), which is then noted. The range is
  /// within the memory.
  std::optional<Conflict> read(int64_t begin, int64_t bytes, const Mark& by,
                               const Knowledge& knows);
  std::optional<Conflict> write(int64_t begin, int64_t bytes, const Mark& by,
                                const Knowledge& knows);
  /// Of the piece that has the byte.
  [[nodiscard]] const Mark& last_write(int64_t byte) const { return cells_[byte / unit_].write; }
  [[nodiscard]] bool written(int64_t byte) const {
    return last_write(byte).component != Mark::nobody;
  }
  [[nodiscard]] int64_t unit() const { return unit_; }

 private:
  struct Cell {
    Mark write;
    std::vector<Mark> reads;
  };
  [[nodiscard]] std::optional<Conflict::Kind> unordered(const Mark& earlier, const Mark& by,
                                                        const Knowledge& knows) const;
  void note_read(Cell& cell, const Mark& by, const Knowledge& knows);

  std::vector<Cell> cells_;
  int64_t unit_ = 1;
  bool global_ = false;
};

}  // namespace tessera::simulate
