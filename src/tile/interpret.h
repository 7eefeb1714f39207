// Executes a Program at small sizes, every thread and every register slot, and judges it: reads
// outside a tensor, reads of what was never written, elements written twice. Arithmetic is double,
// rounded to each value's element type, so a result is what the kernel means up to the order of its
// sums.
//
// Slots that no element belongs to stay empty (dead). Using an empty slot where it could be
// observed is an error, so a program that forgets that a tile is cut does not pass.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "tile/program.h"

namespace tessera::tile {

/// Storage of every tensor in the program's order, `extent()` elements each. Inputs are read;
/// outputs may be empty. Returns the storage of all tensors after the run; elements never written
/// hold a NaN with `written` false.
struct Memory {
  std::vector<std::vector<double>> data;
  std::vector<std::vector<bool>> written;
};
Result<Memory> interpret(const Program& p, std::vector<std::vector<double>> tensors);

inline constexpr Code out_of_bounds{"TS0420", "tile.out_of_bounds"};
inline constexpr Code uninitialized{"TS0421", "tile.uninitialized_read"};
inline constexpr Code double_write{"TS0422", "tile.double_write"};
inline constexpr Code race{"TS0423", "tile.race"};

/// The slots of a shared ring while a block runs.
struct SharedRing {
  struct Slot {
    std::vector<double> data;  // by the layout's offsets
    int64_t tile = -1;         // the walk's tile that it holds or awaits
    int64_t group = 0;         // of the copy that fills it
    bool visible = false;      // waited for
    bool read = false;         // since the block last met
  };
  std::vector<Slot> slots;
};

/// What an op's interpret hook works with.
class Interpreter {
 public:
  using Slots = std::vector<std::optional<double>>;  // thread * registers + register; empty is dead

  const Program* program = nullptr;
  const Kernel* kernel = nullptr;
  Memory memory;

  [[nodiscard]] const Type& type(ValueId v) const { return kernel->values.at(v.index).type; }
  [[nodiscard]] const Slots& slots(ValueId v) const { return slots_.at(v.index); }
  void set(ValueId v, Slots s) { slots_.at(v.index) = std::move(s); }
  /// The tile that a variable stands at.
  int64_t& tile(VarId v) { return tiles_.at(v.index); }
  /// The element belongs to the tile here: inside its extents and inside the tensor that its
  /// variables walk.
  bool live(const Type& t, const std::vector<int64_t>& c);
  /// Where a view's element lies in its tensor's storage, for the coordinate of a register tile.
  int64_t address(ValueId view, const std::vector<Index>& indices, const std::vector<int64_t>& c,
                  int* tensor);
  Result<double> read(ValueId view, const std::vector<Index>& indices,
                      const std::vector<int64_t>& c);
  Status write(ValueId view, const std::vector<Index>& indices, const std::vector<int64_t>& c,
               double value);
  /// Tiles of the variable that are visited where the other variables stand.
  [[nodiscard]] int64_t visited(VarId v) const;
  /// Calls for all slots in thread order.
  static Status for_slots(
      const Type& t, const std::function<Status(int64_t slot, const std::vector<int64_t>&)>& f);
  Status region(const Region& r);
  Status run(const Kernel& k);
  /// view results: the op that made the view.
  std::vector<const Op*> views;
  std::map<int32_t, SharedRing> rings;
  int64_t copy_groups = 0;  // committed so far
  /// The slot of a ring that holds the tile where its variable stands, ready to be read.
  Result<const SharedRing::Slot*> landed(ValueId ring);

 private:
  std::vector<Slots> slots_;
  std::vector<int64_t> tiles_;
};

}  // namespace tessera::tile
