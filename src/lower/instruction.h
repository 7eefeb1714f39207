// Instructions as functions of the emitted text: one function a form, with its modifiers and the
// way in which its operands are handed over; a call for every op.
#pragma once

#include <map>

#include "arch/instruction.h"

#include "lower/names.h"

namespace tessera::lower {

/// How an operand comes to an instruction's function.
struct Passed {
  enum class By : uint8_t {
    value,      // one of the type
    values,     // as many as the operand has registers
    pointer,    // to as many registers: an array's elements
    reference,  // one register that is written
    constant,   // a template's argument
  };
  By by = By::value;
  std::string type;                // of C++: "uint32_t", "float", "const void*"
  std::vector<std::string> texts;  // of the call: one, or for `values` one a register
};

/// The type of C++ that holds an operand of this kind by value.
std::string_view type_of(arch::OperandKind k);

class Instructions {
 public:
  explicit Instructions(Names& names) : names_(names) {}
  /// The statement that executes the form; `operands` in the order of the form's.
  Result<std::string> call(const arch::Form& form, const arch::Choices& choices,
                           const std::vector<Passed>& operands);
  /// All functions that calls name, in the order of their first calls.
  [[nodiscard]] const std::string& functions() const { return functions_; }

 private:
  struct Key {
    std::string what;
    std::vector<std::pair<Passed::By, std::string>> operands;
    auto operator<=>(const Key&) const = default;
  };
  Names& names_;
  std::map<Key, std::string> known_;
  std::string functions_;
};

}  // namespace tessera::lower
