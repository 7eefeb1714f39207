// The type of a tile value: what its elements are, how far it extends, and which slot of which
// thread holds which element.
//
// A register value of 4 threads with 6 registers each, a tile [2, 10] in vectors of 2:
//
//   axes [2, 10]   cover [2, 12]   layout ((2,2),(2,3)):((2,12),(1,4))
//
// maps (thread, register) to the element's row-major index in the cover [2, 12]: threads 0 and 1
// hold columns 0-1 and 2-3 of row 0, and so on in steps of 4. Columns 10 and 11 exist in the cover
// only: their slots are dead. Dead slots hold nothing that may be observed: loads leave them,
// reductions skip them, stores do not write them. An axis that a tile variable walks is also cut at
// the end of the tensor (`var`), so the last tile may have more dead slots than others. Nobody
// writes a mask: it follows from the type, and a checker can derive that it is kept.
#pragma once

#include "base/ids.h"
#include "layout/layout.h"
#include "numeric/dtype.h"

namespace tessera::tile {

using ValueId = Id<struct TileValueTag>;
using VarId = Id<struct TileVarTag>;

enum class Space : uint8_t { global, shared, registers };

struct Axis {
  int64_t extent = 1;
  VarId var;  // when valid: the tile variable whose tensor end cuts this axis
  friend bool operator==(const Axis&, const Axis&) = default;
};

struct Type {
  DType element = DType::float32;
  Space space = Space::registers;
  std::vector<Axis> axes;
  std::vector<int64_t> cover;  // registers: at least the extents
  Layout layout;  // registers: (threads, registers) -> row-major index in cover; global: modes ->
                  // elements

  [[nodiscard]] int64_t threads() const { return layout.mode(0).size(); }
  [[nodiscard]] int64_t registers() const { return layout.mode(1).size(); }
  friend bool operator==(const Type&, const Type&) = default;
};

/// One leaf of a register layout: `extent` steps of `step` along `axis`; axis -1 repeats the same
/// element.
struct SpreadMode {
  int64_t extent = 1;
  int axis = -1;
  int64_t step = 0;
  friend bool operator==(const SpreadMode&, const SpreadMode&) = default;
};
struct Spread {
  std::vector<SpreadMode> threads;    // lowest thread index first
  std::vector<SpreadMode> registers;  // fastest register first
};

/// The layout taken apart by axes. Fails when a mode leaves its axis or runs across two.
Result<Spread> try_spread(const Type& t);
Spread spread(const Type& t);
/// The inverse of spread: modes to a layout over `cover`.
Layout layout_of(const Spread& s, const std::vector<int64_t>& cover);

/// The coordinate (one integer an axis) of a slot.
std::vector<int64_t> coordinate(const Type& t, int64_t thread, int64_t reg);

/// A register type checked: axes and cover agree, the spread exists, and every element of the tile
/// has a slot.
Result<Type> try_register_type(DType element, std::vector<Axis> axes, std::vector<int64_t> cover,
                               Layout layout);

/// `f32[4,768]`.
std::string to_string(const Type& t);

}  // namespace tessera::tile
