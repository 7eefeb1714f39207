// What the compiler knows of one operation. A file in tile/ops/ is a family: a table of these
// records. Adding an operation is adding a record; no other file lists operations.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tile/program.h"

namespace tessera::tile {

class Interpreter;
class Emitter;

/// How the emitter may combine an op with its neighbours.
enum class Shape : uint8_t {
  element,  // one result element from the same element of each operand: joins the loop of its
            // neighbours
  fold,     // consumes such elements and ends the loop: a reduction
  block,    // stands alone
};

struct OpRecord {
  std::string_view name;
  Shape shape = Shape::block;
  /// Types of the results; an error says which operand is wrong.
  Result<std::vector<Type>> (*infer)(const Program&, const Kernel&, const Op&) = nullptr;
  /// Executes all threads.
  Status (*interpret)(Interpreter&, const Op&) = nullptr;
  /// Element ops: statements of the innermost loop. Block ops: statements. `Emitter::target` tells
  /// the target.
  Status (*emit)(Emitter&, const Op&) = nullptr;
};

struct OpFamily {
  std::string_view name;
  std::span<const OpRecord> records;
};

/// By name; nullptr when there is none.
const OpRecord* find_op(std::string_view name);

namespace ops {
std::span<const OpFamily* const> all();
}

}  // namespace tessera::tile
