// The machine's instructions as data: one file a family in arch/instructions/, one record a form.
//
// A form is an instruction with its qualifiers: its text, its operands, what it does (Effects). A
// modifier is a qualifier that has several values and changes nothing but a number or a name, so
// one record stands for all of them: <n> of wgmma, <rank> of TMA.
//
// The text is PTX. `<n>` stands for the value of modifier n, `$to` for operand `to`; an operand of
// several registers, or whose number of registers is a modifier's, becomes a list in braces. Where
// PTX wants a predicate, the text is a block with registers of its own, so that every operand is
// one that inline assembly can pass.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arch/effects.h"
#include "diag/result.h"

namespace tessera::arch {

enum class OperandKind : uint8_t {
  shared,          // 32-bit address in this block's shared memory
  cluster_shared,  // 32-bit address in the shared memory of a block of the cluster
  global,          // 64-bit address
  tensor_map,      // 64-bit address of a tensor map, 64-byte aligned
  descriptor,      // 64-bit matrix descriptor (arch/shared_tile.h)
  b16,
  b32,
  b64,
  f32,
  immediate,  // a constant in the text
};
std::string_view name_of(OperandKind k);

enum class Direction : uint8_t { in, out, inout };

struct Operand {
  std::string_view name;
  OperandKind kind = OperandKind::b32;
  Direction direction = Direction::in;
  Amount registers = Amount::number(1);  // of a number or a modifier
  int64_t alignment = 0;                 // bytes, of an address; 0: none
  /// Of an immediate, or of a register that has a legal range: low, low + step, ..., high.
  int64_t low = 0, high = 0, step = 1;
  bool list = false;  // in braces also where it is one register
  [[nodiscard]] bool is_list() const {
    return list || registers.of == Amount::Of::modifier || registers.times != 1;
  }
};

struct Modifier {
  std::string_view name;
  std::vector<std::string> values;
};
using Choices = std::vector<std::pair<std::string_view, std::string>>;

struct Form {
  std::string name;  // "tma.load"
  std::string doc;
  std::string_view capability;  // of the architecture that has it (arch.h)
  std::vector<Modifier> modifiers;
  std::vector<Operand> operands;
  std::string ptx;
  Effects effects;

  [[nodiscard]] const Operand* operand(std::string_view name) const;
  [[nodiscard]] const Modifier* modifier(std::string_view name) const;
};

struct Family {
  std::string_view name;
  std::string_view doc;
  std::string_view section;  // of the PTX ISA
  std::span<const Form> (*forms)();
};

/// By name among all families; nullptr when there is none.
const Form* find_form(std::string_view name);
/// Fails unless every modifier of the form, and nothing else, has one of its values.
Status check(const Form& form, const Choices& choices);
/// All combinations of the values of a form's modifiers.
std::vector<Choices> combinations(const Form& form);
/// An amount of a number or a modifier, which must be a whole number; nothing for the others.
std::optional<int64_t> value_of(const Amount& a, const Choices& choices);

/// One register, address or constant of a rendered text.
struct Slot {
  std::size_t operand;     // place in Form::operands
  int64_t register_index;  // in the operand
  std::string constraint;  // of inline assembly: "=r", "+f", "l", "n"
};
struct Rendered {
  std::string text;         // with %0, %1, ... for the slots
  std::vector<Slot> slots;  // those that are written first, as inline assembly numbers them
};
/// For inline assembly. Fails as `check` does.
Result<Rendered> render(const Form& form, const Choices& choices);

namespace instructions {
std::span<const Family* const> all();
}

}  // namespace tessera::arch
