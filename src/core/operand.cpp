#include "core/operand.h"

#include "core/verify.h"

namespace tessera::core {
namespace {

using arch::OperandKind;

/// What an access with a 16-bit register moves: 1 or 2 bytes.
int64_t bytes_of_half(const arch::Form& form, const arch::Choices& choices) {
  if (form.effects.accesses.empty()) return 2;
  const auto bytes = value_of(form.effects.accesses.front().bytes, choices);
  return bytes && *bytes == 1 ? 1 : 2;
}

}  // namespace

Result<int64_t> slots_of(const arch::Form& form, const arch::Operand& o,
                         const arch::Choices& choices, DType element) {
  const int64_t registers = value_of(o.registers, choices).value_or(1);
  const int64_t size = size_of(element);
  const auto refuse = [&](std::string_view expected) {
    return error(fail(bad_registers, "`{}` of `{}` holds no elements of {}", o.name, form.name,
                      short_name(element))
                     .expect("{}", expected)
                     .but_found("{}", short_name(element)));
  };
  switch (o.kind) {
    case OperandKind::f32:
      if (element != DType::float32) return refuse("f32");
      return registers;
    case OperandKind::b64:
      if (size != 8) return refuse("elements of 64 bits");
      return registers;
    case OperandKind::b16: {
      const int64_t bytes = bytes_of_half(form, choices);
      if (size > bytes) return refuse(bytes == 1 ? "elements of 8 bits" : "8 or 16 bits");
      return registers * bytes / size;
    }
    case OperandKind::b32:
      if (registers * 4 % size != 0) return refuse("elements of at most 32 bits");
      return registers * 4 / size;
    default:
      return refuse("no registers: an address or a constant");
  }
}

}  // namespace tessera::core
