// Payloads of the first operations: what an op is besides its operands. Each is read by its own
// family only; builders make them.
#pragma once

#include <memory>

#include "graph/pointwise.h"
#include "tile/program.h"

namespace tessera::tile {

/// view: a tensor of the program seen through a layout, from element `offset`.
struct ViewOf {
  int tensor = 0;
  Layout layout;
  int64_t offset = 0;
};
/// load, store: where in the view; a load also says which slot gets which element.
struct At {
  std::vector<Index> indices;
  std::vector<int64_t> cover;  // load only
  Layout layout;               // load only
};
/// map: results in the order of dag->results.
struct MapOf {
  std::shared_ptr<const graph::PointwiseDag> dag;
};
/// reduce along an axis, which keeps extent 1. The result is in every thread that shares its
/// coordinate.
struct Fold {
  enum class Kind : uint8_t { sum, max } kind = Kind::sum;
  int axis = 0;
};
/// broadcast to, or fill as, this type.
struct Like {
  Type type;
  double value = 0;  // full
  int axis = 0;      // iota: the global index along this axis
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
struct Role {
  int warpgroups = 1;
  int registers = 0;
};

}  // namespace tessera::tile
