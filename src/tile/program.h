// A tile program: kernels whose operations read and write whole tiles.
//
// clang-format off
//   @kernel(threads=32)
//   def softmax(x: Tensor[f32, 6, 64], y: Tensor[f32, 6, 64, out]):
//       x_rows = view(x, "(6,64):(64,1)")
//       y_rows = view(y, "(6,64):(64,1)")
//       for r in tiles(6, 1):                                     # parallel: one tile a block
//           a = load(x_rows[r, :], cover=[64], layout="(32,2):(2,1)")  # (thread, register) -> element
//           m = reduce(max, a, axis=0)
//           b = broadcast(m, [64], cover=[64], layout="(32,2):(2,1)")
//           e = map(lambda x0, x1: exp(sub(x0, x1)), a, b)
//           ...
//           store(y_rows[r, :], e)
// clang-format on
//
// One Program is the whole of what a built kernel runs: its tensors (inputs, outputs, workspace)
// and kernels launched in order. Values are in SSA form; the only names that change are a loop's
// carried values. An operation is a record of its family (tile/ops/) plus a payload that only that
// family reads; regions hold the bodies of loops and roles. The text form (print.h) is complete:
// what is not printed does not exist. Positions of the author's text travel in `place`.
#pragma once

#include <any>
#include <map>
#include <string>
#include <vector>

#include "tile/type.h"

namespace tessera::tile {

struct OpRecord;

/// How one mode of a view is indexed.
struct Index {
  enum class Kind : uint8_t {
    all,   // `:`  the whole mode
    tile,  // `r`  the tile of this variable; the variable's step is the axis extent
    pick,  // `r`  one element: the variable's step is 1 and the axis disappears
  } kind = Kind::all;
  VarId var;
};

/// A tile variable: walks [0, total) in steps; the last tile may be cut.
struct TileVar {
  std::string name;
  int64_t total = 1;
  int64_t step = 1;
  // Optional: tiles starting at or after (until_var + 1) * its step + until_offset are not visited
  // (causal attention).
  VarId until_var;
  int64_t until_offset = 0;
  bool reversed = false;  // parallel tiles: the last one first
  [[nodiscard]] int64_t count() const { return (total + step - 1) / step; }
};

struct Op;
struct Region {
  std::vector<ValueId> arguments;  // carried values at the start of a turn
  std::vector<Op> ops;
  std::vector<ValueId> yields;  // carried values at its end, as many as arguments
};

struct Op {
  const OpRecord* record = nullptr;
  std::vector<ValueId> operands;
  std::vector<ValueId> results;
  std::vector<Region> regions;
  std::any payload;
  Place place;
};

struct Value {
  std::string name;
  Type type;
};

enum class Access : uint8_t { input, output, workspace };

/// A tensor of the launch: `numel` elements of storage from element 0. Views give them shapes.
struct Tensor {
  std::string name;
  DType element = DType::float32;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  Access access = Access::input;
  /// Elements from the first to one past the last that the strides reach.
  [[nodiscard]] int64_t extent() const;
};

struct Kernel {
  std::string name;
  int threads = 1;
  int min_blocks = 0;  // blocks that must fit on a multiprocessor together: bounds the registers
  std::map<std::string, int64_t>
      constants;  // `NAME: const = value`: the decisions that made it, for people and tuners
  Region body;
  std::vector<Value> values;
  std::vector<TileVar> vars;
};

struct Program {
  std::string name;
  std::vector<Tensor> tensors;  // inputs, outputs, workspace: the order of the launch
  std::vector<Kernel> kernels;
};

/// What a target cannot do; the message has the reason.
inline constexpr Code unsupported{"TS0401", "tile.unsupported"};
inline constexpr Code bad_program{"TS0411", "tile.bad_program"};

/// Builds one kernel op by op; every op's type rule runs when it is added. The first failure is
/// kept and `finish` returns it, so builders read without a check a line.
class KernelBuilder {
 public:
  KernelBuilder(Program& program, std::string name, int threads);

  VarId var(std::string name, int64_t total, int64_t step);
  VarId var_until(std::string name, int64_t total, int64_t step, VarId until, int64_t offset);
  /// Adds an op; returns its results (as many as the type rule gives). `names` are hints.
  std::vector<ValueId> add(std::string_view op, std::vector<ValueId> operands, std::any payload,
                           std::string_view name = "v");
  ValueId one(std::string_view op, std::vector<ValueId> operands, std::any payload,
              std::string_view name = "v");
  /// Opens a region of `op`; ops are added inside it until `close`. Returns the region's arguments
  /// (carried values).
  std::vector<ValueId> open(std::string_view op, std::vector<ValueId> carried, std::any payload);
  /// Closes the innermost region; returns the carried values after the loop.
  std::vector<ValueId> close(std::vector<ValueId> yields = {});
  [[nodiscard]] const Type& type(ValueId v) const { return kernel_.values.at(v.index).type; }
  [[nodiscard]] const Program& program() const { return program_; }
  Kernel& kernel() { return kernel_; }
  /// Appends the kernel to the program, or the first failure.
  Status finish();

 private:
  ValueId define(Type type, std::string_view hint);
  Program& program_;
  Kernel kernel_;
  std::vector<Op> open_;  // ops whose last region is being filled
  std::map<std::string, int> name_counts_;
  std::optional<Diagnostic> failure_;
};

}  // namespace tessera::tile
