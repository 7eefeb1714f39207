// A kernel made ready to run at one launch: flat code, compiled terms, input bytes. Runs share it
// and do not change it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "arch/wgmma.h"
#include "layout/layout.h"

#include "core/kernel.h"
#include "simulate/expression.h"
#include "simulate/simulate.h"

namespace tessera::simulate {

struct Semantics;  // simulate/values.h

/// A top-level mode of a layout, its offsets by coordinate.
struct Mode {
  int64_t size = 1;
  int64_t stride = 0;            // where all coordinates have one
  std::vector<int64_t> offsets;  // otherwise
  [[nodiscard]] int64_t operator()(int64_t i) const {
    return offsets.empty() ? i * stride : offsets[static_cast<std::size_t>(i)];
  }
};
std::vector<Mode> modes_of(const Layout& layout);

/// An argument of an instruction.
struct OperandCode {
  enum class Kind : uint8_t { shared, barrier, global, map, registers, integers };
  const arch::Operand* form = nullptr;
  Kind kind = Kind::integers;
  int storage = -1;            // in the kernel's list of its kind
  std::vector<Expression> at;  // coordinates, slot, first element slot, or values
  bool by_lane = false;
  int64_t elements = 0;  // element slots of a slice
};

/// What names in the form's effects stand for: places in IssueCode::operands, -1: none.
struct AccessCode {
  const arch::Access* effect = nullptr;
  int operand = -1, bytes = -1, blocks = -1, unless_zero = -1;
  int64_t fixed_bytes = 0;  // of amounts that are no operand
  int64_t lanes = 32;       // of Place::rows
};
struct EventCode {
  const arch::Event* effect = nullptr;
  int operand = -1, amount = -1, blocks = -1, block = -1;
  int64_t fixed = 0;  // of an amount that is no operand
};
struct NeedCode {
  arch::FenceKind fence;
  int operand = -1;
};

struct IssueCode {
  const arch::Form* form = nullptr;
  const core::Issue* issue = nullptr;
  const Semantics* semantics = nullptr;
  std::optional<arch::Wgmma> wgmma;
  std::vector<int32_t> sums;  // of wgmma: (lane, element) to m + 64 n, of the first 16 rows
  std::vector<OperandCode> operands;
  std::vector<AccessCode> accesses;
  std::vector<EventCode> events;
  std::vector<NeedCode> needs;
  bool whole_warp = false;    // issued by all 32 lanes together
  bool asynchronous = false;  // some access is finished later
  bool visible = false;       // others may see when it happens
  /// The place of an operand; throws where the form has none: a fault of ours.
  [[nodiscard]] int operand(std::string_view name) const;
};

struct RunCode {
  int registers = 0;
  Expression first;
  std::vector<int64_t> steps;
};
struct ComputeCode {
  const core::Compute* compute = nullptr;
  std::vector<std::variant<RunCode, Expression>> inputs;
  std::vector<RunCode> results;
  std::vector<std::vector<int>> made_of;  // of each result: the inputs that it is a function of
  int element = -1;                       // its place in the frame
};

/// What an author says or asserts of tags.
struct TagCode {
  struct At {
    bool registers = false;
    int storage = -1;
    std::vector<Expression> at;  // coordinates, or the slot
  };
  struct Symbol {
    int place = 0;  // in the frame
    int64_t extent = 1;
  };
  const core::Tag* says = nullptr;  // one of both
  const core::AssertTag* asserts = nullptr;
  int name = 0;  // in Program::tag_names
  At at;
  std::optional<At> other;  // that is compared with
  Expression value;         // else
  std::vector<Symbol> here, there,
      both;  // of `over`: what the place alone, the other side, both have
  bool by_lane = false;
};
/// The tags that a tensor's elements have from the beginning: a value of the indices a name.
struct TensorTags {
  int name = 0;
  std::vector<int> places;  // of the indices, in the frame
  Expression value;
};

enum class CodeKind : uint8_t {
  issue,
  compute,
  tags,  // of `index`
  declare,
  branch,  // where `condition` is false, to `target`
  jump,    // to `target`
  set,     // frame[place] = value
  next,    // frame[place] += value, to `target`: a branch, which sets its place to 0 when it leaves
  elect,   // one lane goes on, the others to `target`
  role,    // warps outside of [first, first + count) to `target`; frame[place] = place in the role
  end,
};
struct Instruction {
  CodeKind kind = CodeKind::end;
  int target = 0;
  int index = 0;   // of issue, compute, tags; the registers of declare
  int place = -1;  // in the frame
  int first = 0, count = 0;
  Expression value;  // the condition of a branch
  bool by_lane = false;
  const core::Op* op = nullptr;
  int scope = 0;  // in Program::scopes
};
/// The counters of the loops around an instruction, and their places in the frame.
using LoopScope = std::vector<std::pair<std::string, int>>;

struct TensorCode {
  int64_t elements = 0;  // that it spans
  std::vector<int64_t> extents, strides;
  int64_t unit = 1;            // bytes of a piece of its shadow
  std::vector<uint8_t> bytes;  // of an input, in cells
};
struct MapCode {
  std::vector<int64_t> extents, strides, box;  // elements, dimension 0 fastest
  int64_t bytes = 0;                           // of a box
};

struct Program {
  core::Kernel kernel{"", 32};
  Launch launch;
  int64_t cell = 1;  // bytes here for one of the machine (simulate/domain.h)
  std::vector<Instruction> code;
  std::vector<LoopScope> scopes = {{}};
  std::vector<IssueCode> issues;
  std::vector<ComputeCode> computes;
  std::vector<std::string> tag_names;  // none: nothing is tagged
  std::vector<TagCode> tags;
  std::vector<std::vector<TensorTags>> tensor_tags;  // by tensor
  std::vector<TensorCode> tensors;
  std::vector<MapCode> maps;
  std::vector<std::vector<Mode>> shared;  // the modes of each run of shared memory
  std::vector<int64_t> slots;             // of each register array: elements a thread has
  std::vector<int> first_barrier;         // of each array, in the block's barriers
  int barriers = 0;
  int64_t barriers_begin = 0, barriers_end = 0;  // the bytes around all of them
  int64_t shared_unit = 16;
  int64_t blocks = 1;
  int lane = 0, warp = 0, block = 0, rank = 0;  // places in the frame
  Frame frame;                                  // with the launch's parameters
  bool early = false;  // it may start before the grids before it have ended
};

Result<std::shared_ptr<const Program>> compile(const core::Kernel& kernel, const Launch& launch);

}  // namespace tessera::simulate
