// Payloads of the first operations: what an op is besides its operands. Each is read by its own
// family only; builders make them.
#pragma once

#include <memory>
#include <optional>

#include "arch/mma.h"
#include "base/integers.h"
#include "tile/program.h"

#include "pointwise/pointwise.h"

namespace tessera::tile {

/// view: a tensor of the program seen through a layout, from element `offset`.
struct ViewOf {
  int tensor = 0;
  Layout layout;
  int64_t offset = 0;
};
/// load: where in the view, and which slot gets which element.
struct LoadAt {
  std::vector<Index> indices;
  std::vector<int64_t> cover;
  Layout layout;
};
/// store: where in the view, which is the second operand.
struct StoreAt {
  std::vector<Index> indices;
};
/// map: results in the order of dag->results.
struct MapOf {
  std::shared_ptr<const pointwise::Dag> dag;
};
/// reduce along an axis, which keeps extent 1. The result is in every thread that shares its
/// coordinate.
struct Fold {
  enum class Kind : uint8_t { sum, max } kind = Kind::sum;
  int axis = 0;
};
/// broadcast to this type.
struct Like {
  Type type;
};
/// full: this value everywhere.
struct FullOf {
  Type type;
  double value = 0;
};
/// iota: the global index along an axis.
struct IotaAlong {
  Type type;
  int axis = 0;
};
struct CastTo {
  DType element = DType::float32;
};
/// tiles (parallel), steps (serial): the variables, first slowest.
struct Walk {
  std::vector<VarId> vars;
  int blocks_per_multiprocessor =
      0;  // tiles on a GPU: 0 is one tile a block, else that many persistent blocks
  bool uneven =
      false;  // tiles on host: work differs between tiles, so threads take them one by one
};
/// when: the body runs where the tile of `columns` reaches past the diagonal of the tile of `rows`:
/// some column c > r + offset for the first row r.
struct Crossing {
  VarId rows, columns;
  int64_t offset = 0;
};
/// shared: a ring of tiles in shared memory. Tile number n of the walk of `ring` lies in slot
/// n % slots; `layout` maps the coordinate (one mode an axis) to elements from the slot's start.
struct Ring {
  Type type;
  int slots = 1;
  VarId ring;
  /// Elements from slot to slot: slots start at 128 bytes.
  [[nodiscard]] int64_t slot_elements() const {
    const int64_t unit = 128 / size_of(type.element);
    return round_up(type.layout.cosize(), unit);
  }
};
/// copy: a tile of a view into its slot of a ring, asynchronously; elements outside the tensor
/// become 0. The tile is `tile` steps ahead of where the ring's variable stands, or number `tile`
/// when from_start. A tile that the walk does not visit is not copied.
struct CopyOf {
  std::vector<Index> indices;
  std::vector<int64_t> cover;
  Layout layout;  // (thread, register): who moves what
  int64_t tile = 0;
  bool from_start = false;
};
/// wait: until at most `pending` of the newest committed groups of copies are under way; then all
/// threads of the block have met and see what was copied.
struct Wait {
  int pending = 0;
};
/// dot: by which matrix instruction (none on host). With terms == 3 every operand is split into a
/// high and a low part and three products are added: fp32 accuracy from tf32 instructions.
struct Product {
  const arch::Mma* by = nullptr;
  int terms = 1;
  bool b_transposed = false;  // the second operand is given as [N, K]
  bool a_rounded = false;     // the first operand is rounded as the instruction takes it
  /// When the first operand is in shared memory: the registers that it is read into, step by step.
  std::optional<Type> a_fragment;
};

}  // namespace tessera::tile
