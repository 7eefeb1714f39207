// A tile program: kernels whose operations read and write whole tiles.
//
// clang-format off
//   @kernel(threads=32)
//   def softmax(x: Tensor[f32, 6, 64], y: Tensor[f32, 6, 64, out]):
//       x_rows = view(x, layout="(6,64):(64,1)")
//       y_rows = view(y, layout="(6,64):(64,1)")
//       for r in tiles(span(6, 1)):                               # parallel: one tile a block
//           a = load(x_rows[r, :], cover=[1, 64], layout="(32,2):(2,1)")  # (thread, register) -> element
//           m = reduce(a, by=max, axis=1)
//           b = broadcast(m, like=tile(f32, [cut(1, r), 64], layout="(32,2):(2,1)"))
//           e = map(a, b, by=lambda x0, x1: exp(sub(x0, x1)))
//           ...
//           store(e, y_rows[r, :])
// clang-format on
//
// One Program is the whole of what a built kernel runs: its tensors (inputs, outputs, workspace)
// and kernels launched in order. Values are in SSA form; the only names that change are a loop's
// carried values. An operation is a record of its family (tile/ops/) plus a payload that only that
// family reads (payload.h); regions hold the bodies of loops and branches.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <vector>

#include "tile/type.h"

namespace tessera::tile {

struct OpRecord;

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

/// How one mode of a view is indexed.
struct Index {
  enum class Kind : uint8_t {
    all,   // `:`  the whole mode
    tile,  // `r`  the tile of this variable; the variable's step is the axis extent
    pick,  // `pick(r)`  one element: the variable's step is 1 and the axis disappears
  } kind = Kind::all;
  VarId var;
};

/// What an op is besides its operands: a value of any type (payload.h); empty for an op that has
/// none.
class Payload {
 public:
  Payload() = default;
  template <class T>
    requires(!std::is_same_v<std::decay_t<T>, Payload>)
  Payload(T value)  // NOLINT(google-explicit-constructor): as a T
      : held_(std::make_shared<const T>(std::move(value))), type_(&typeid(T)) {}

  template <class T>
  [[nodiscard]] const T* find() const {
    return type_ != nullptr && *type_ == typeid(T) ? static_cast<const T*>(held_.get()) : nullptr;
  }
  /// A bug of ours where it is another type.
  template <class T>
  [[nodiscard]] const T& get() const {
    const T* v = find<T>();
    if (v == nullptr) throw std::logic_error(std::string("no payload of type ") + typeid(T).name());
    return *v;
  }

 private:
  std::shared_ptr<const void> held_;
  const std::type_info* type_ = nullptr;
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
  Payload payload;
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
  Region body;
  std::vector<Value> values;
  std::vector<TileVar> vars;
};

struct Program {
  std::string name;             // of its last kernel
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
  std::vector<ValueId> add(std::string_view op, std::vector<ValueId> operands, Payload payload,
                           std::string_view name = "v");
  ValueId one(std::string_view op, std::vector<ValueId> operands, Payload payload,
              std::string_view name = "v");
  /// Opens a region of `op`; ops are added inside it until `close`. Returns the region's arguments
  /// (carried values).
  std::vector<ValueId> open(std::string_view op, std::vector<ValueId> carried, Payload payload);
  /// Closes the innermost region; returns the carried values after the loop.
  std::vector<ValueId> close(std::vector<ValueId> yields = {});
  [[nodiscard]] const Type& type(ValueId v) const { return kernel_.values.at(v.index).type; }
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
