// The core: a GPU kernel as the machine runs it, with everything that it does in its text.
//
// clang-format off
//   @kernel(threads=384, cluster=1, min_blocks=1, grid=min(multiprocessors, (M + 127) // 128 * ((N + 255) // 256)))
//   def gemm(
//       M: Index[8, 1048576, 8],
//       ...
//       C: Tensor[bf16, (M, N), (N, 1), out],
//   ):
//       A_map = tensor_map(A, dims=[1, 0], box=[64, 128], swizzle=128, fill=0)
//       a = shared(bf16, "(4,128,64):(8192,64,1)", swizzle=128, at=0)
//       full = barriers(4, at=229376)
//       ...
//       with role(consumer, warps=[4, 12]) as consumer_warp:
//           acc = registers(f32, [128, 256], "((4,8,4,2),(2,2,32)):((256,1,16,64),(128,8,1024))")
//           for k in range(0, (K + 63) // 64):
//               issue("mbarrier.wait", full[k % 4], k // 4 % 2)
//               issue("wgmma.fence")
//               issue("wgmma.f32.bf16.bf16.ss", acc[0], a[k % 4, consumer_warp // 4 * 64, 0], b[k % 4, 0, 0], ..., n=256)
// clang-format on
//
// A kernel is a list of storages (tensors, tensor maps, shared memory, barriers, registers) and a
// body of ops. All state lies in the storages; there are no other values. Indices are terms
// (term/term.h) of the kernel's own pool, over its extents, loop counters, and the coordinates of
// the thread that executes. Instructions are the records of arch/instruction.h: what one reads,
// writes, signals and awaits is stated there alone, and the interpreter, the checker and the
// emitter take it from there.
//
// Barriers, fences, shared memory and its addresses, and the wait for earlier grids are in the
// text; nothing is added later. Every op has the place of the author's text that it comes from.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "arch/instruction.h"
#include "arch/tma.h"
#include "base/ids.h"
#include "diag/source.h"
#include "layout/layout.h"
#include "numeric/dtype.h"

#include "pointwise/pointwise.h"
#include "term/term.h"

namespace tessera::core {

using term::Term;

using TensorId = Id<struct TensorTag>;
using MapId = Id<struct MapTag>;
using SharedId = Id<struct SharedTag>;
using BarriersId = Id<struct BarriersTag>;
using RegistersId = Id<struct RegistersTag>;

enum class Access : uint8_t { input, output, workspace };

/// A tensor of the launch. Element `c` lies at the sum of c[i] * strides[i] elements. A workspace
/// is scratch memory of the launch, of extents[0] * strides[0] elements.
struct Tensor {
  std::string name;
  DType element = DType::float32;
  std::vector<Term> extents;
  std::vector<Term> strides;  // elements
  Access access = Access::input;
  Span span = {};  // of Kernel::source, as those of all storages: where it is declared
};

/// A tensor map that the launch makes of a tensor and passes by value.
struct TensorMap {
  std::string name;
  TensorId tensor;
  std::vector<int> dims;  // of the tensor, the contiguous one first: order of coordinates and box
  std::vector<int64_t> box;  // elements
  arch::SwizzleMode swizzle = arch::SwizzleMode::none;
  arch::OutOfBounds fill = arch::OutOfBounds::zeros;
  bool rounded = false;  // float32 that loads round to tf32
  Span span = {};
};

/// A run of the block's dynamic shared memory. Its modes are its coordinates, slots of a ring among
/// them; an element lies at byte swizzle(at + size_of(element) * layout(c)). Runs may overlap on
/// purpose; the checker sees it.
struct Shared {
  std::string name;
  DType element = DType::bfloat16;
  Layout layout;
  arch::SwizzleMode swizzle = arch::SwizzleMode::none;
  int64_t at = 0;  // bytes from the start, a multiple of arch::alignment_of(swizzle)
  Span span = {};
  [[nodiscard]] int64_t bytes() const { return layout.cosize() * size_of(element); }
};

/// mbarriers, 8 bytes each.
struct Barriers {
  std::string name;
  int64_t count = 1;
  int64_t at = 0;  // bytes from the start of shared memory, a multiple of 8
  Span span = {};
};

/// Registers of the threads that execute the region where they are declared: all threads of the
/// role (or of the block, outside of roles), in order. The layout maps (thread, element slot) to
/// the element's index in `tile`, first axis fastest. Elements below 32 bits share registers with
/// their neighbours of the slot mode: 16-bit ones by twos, 8-bit ones by fours.
struct Registers {
  std::string name;
  DType element = DType::float32;
  std::vector<int64_t> tile;
  Layout layout;
  Span span = {};
  [[nodiscard]] int64_t slots() const { return product(layout.shape().mode(1)); }
  [[nodiscard]] int64_t per_register() const {
    return size_of(element) >= 4 ? 1 : 4 / size_of(element);
  }
};

// ---- arguments of instructions
// -------------------------------------------------------------------

/// An element of shared memory: its address, or the start of the matrix that a descriptor names.
/// The axes of such a matrix are the last two modes of the layout: m or n, then k, whichever is
/// contiguous.
struct SharedAt {
  SharedId shared;
  std::vector<Term> at;  // one term a mode of the layout
};
/// One of an array of mbarriers.
struct BarrierAt {
  BarriersId barriers;
  Term slot;
};
/// The address of an element of a tensor.
struct GlobalAt {
  TensorId tensor;
  std::vector<Term> at;
};
/// The address of a tensor map.
struct MapRef {
  MapId map;
};
/// Registers from element slot `first`; how many, the instruction's operand says. `first` is made
/// of constants and counters of unrolled loops.
struct Slice {
  RegistersId registers;
  Term first;
};
/// Integers: one, or as many as the operand has registers (coordinates of a tensor map, the
/// contiguous dimension first).
struct Integers {
  std::vector<Term> values;
};
using Argument = std::variant<SharedAt, BarrierAt, GlobalAt, MapRef, Slice, Integers>;

// ---- ops
// -----------------------------------------------------------------------------------------

struct Op;
using Body = std::vector<Op>;

/// An instruction: one argument an operand of the form, in its order.
struct Issue {
  const arch::Form* form = nullptr;
  arch::Choices choices;
  std::vector<Argument> arguments;
  std::vector<Span> spans = {};  // of the arguments, in Kernel::source; empty: no text of their own
};

/// A run of element slots: element e of `count` is slot first + steps(e).
struct Run {
  RegistersId registers;
  Term first;
  Layout steps;  // of Compute::count elements
};
/// For e = 0, ..., count - 1, in this order: results = dag(inputs). An input is the element of a
/// run, or a term, which may have Compute::element in it. A result is rounded to the element type
/// of its registers. Runs with steps of 0 make sums and maxima: an input that is a result sees what
/// the last element left.
struct Compute {
  std::shared_ptr<const pointwise::Dag> dag;
  std::vector<std::variant<Run, Term>> inputs;
  std::vector<Run> results;
  int64_t count = 1;
  Term element;  // a coordinate of `count` values; may be empty where no input names it
};

/// Declares registers for the rest of the body that it stands in. They hold nothing yet.
struct Declare {
  RegistersId registers;
};

/// A sum over the turns of a loop before this one: 0 in the first, then `amount`, of each turn,
/// more. A ring that has another number of turns in each goes on from it.
struct Carried {
  Term symbol;  // a counter of the pool in [0, most_carried), known in the loop's body
  Term amount;  // of the turn, at least 0
};
inline constexpr int64_t most_carried = int64_t{1} << 62;

/// counter = lower, lower + step, ... below upper. An unrolled loop has constant bounds, and
/// carries nothing.
struct For {
  Term counter;
  Term lower, upper;
  Term step;  // at least 1
  bool unroll = false;
  Body body;
  std::vector<Carried> carried = {};
};

/// Where the condition depends on lane, the lanes go apart until the next op that a whole warp
/// issues.
struct If {
  Term condition;
  Body body, otherwise;
};

/// One lane of each warp that comes here runs the body; the others go on to the next op that a
/// whole warp issues.
struct Elected {
  Body body;
};

/// Warps [first_warp, first_warp + warps) run the body, the others pass it by. Roles stand in the
/// kernel's body alone and do not overlap.
struct Role {
  std::string name;
  int first_warp = 0;
  int warps = 4;
  Term warp;  // a coordinate of `warps` values: the warp's place in the role
  Body body;
};

/// Where elements lie that carry tags: an element of a tensor, of shared memory, or a slot of each
/// thread's registers.
using Tagged = std::variant<GlobalAt, SharedAt, Slice>;

/// What the author says of elements: for all values of the symbols `over`, the element at `at`
/// carries `value` under `name` from here on; without a value it carries nothing under it. Values
/// move with what is copied, and meet where elements are computed (docs/core.md). The machine does
/// nothing for it.
struct Tag {
  Tagged at;
  std::string name;
  Term value;              // null: nothing
  std::vector<Term> over;  // coordinates, or of a tensor counters from 0 to its extents
};

/// What the author asserts: for all values of `over`, the element at `at` carries under `name` the
/// value of `to`, or the same as the element there; with `apart`, another one. Both have to carry
/// one value: what carries none agrees with nothing. The machine does nothing for it.
struct AssertTag {
  Tagged at;
  std::string name;
  bool apart = false;
  std::variant<Term, Tagged> to;
  std::vector<Term> over;
};

struct Op {
  std::variant<Issue, Compute, Declare, For, If, Elected, Role, Tag, AssertTag> node;
  Span span;  // of Kernel::source

  template <class T>
  [[nodiscard]] const T* as() const {
    return std::get_if<T>(&node);
  }
};

// ---- the kernel
// ----------------------------------------------------------------------------------

/// The coordinates of threads and blocks: symbols of the pool under these names.
struct Coordinates {
  Term lane;             // coordinate, 32
  Term warp;             // coordinate of the block's warps; in a role, Role::warp is to be used
  Term block;            // parameter: the block's index in the grid, in [0, blocks)
  Term blocks;           // parameter: blocks of the launch
  Term rank;             // coordinate of the cluster's blocks: this one's rank
  Term multiprocessors;  // parameter: what the grid's term may use, as the launch finds it
};

struct Kernel {
  Kernel(std::string name, int threads, int cluster = 1);

  std::string name;
  int threads = 128;   // of a block, a multiple of 32
  int cluster = 1;     // blocks of a cluster, along the grid
  int min_blocks = 1;  // blocks that a multiprocessor must hold at once: bounds the registers
  Term grid;           // blocks, a multiple of `cluster`: of the parameters and `multiprocessors`
  /// What it computes, where it says so: "C[i, j] = sum(A[i, k] * B[j, k], k)".
  std::string means;
  std::map<std::string, int64_t> constants;  // the decisions that made it, for people and tuners

  std::shared_ptr<term::Pool> pool;
  Coordinates at;
  std::vector<Term> parameters;  // integers of the launch, in its order; their bounds in the pool
  std::vector<Tensor> tensors;   // in the order of the launch
  std::vector<TensorMap> maps;
  std::vector<Shared> shared;
  std::vector<Barriers> barriers;
  std::vector<Registers> registers;
  Body body;
  std::shared_ptr<const Source> source;  // what spans are of; null: no author's text
  Span span = {};                        // of the kernel's name

  [[nodiscard]] const Tensor& operator[](TensorId i) const { return tensors.at(i.index); }
  [[nodiscard]] const TensorMap& operator[](MapId i) const { return maps.at(i.index); }
  [[nodiscard]] const Shared& operator[](SharedId i) const { return shared.at(i.index); }
  [[nodiscard]] const Barriers& operator[](BarriersId i) const { return barriers.at(i.index); }
  [[nodiscard]] const Registers& operator[](RegistersId i) const { return registers.at(i.index); }
  /// Bytes of shared memory: the end of what lies last.
  [[nodiscard]] int64_t shared_bytes() const;
};

}  // namespace tessera::core
