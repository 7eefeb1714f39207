// How many element slots of registers an operand of an instruction is.
#pragma once

#include "diag/result.h"

#include "core/kernel.h"

namespace tessera::core {

/// Element slots, from Slice::first on, that operand `o` of the form takes of registers with
/// elements of this type. A 32-bit register holds one element of 32 bits, two of 16 or four of 8;
/// two of them hold one of 64. A 16-bit operand is as many elements as the instruction moves bytes
/// for. An f32 operand takes float32 alone. TS0815 where elements of the type do not fit.
Result<int64_t> slots_of(const arch::Form& form, const arch::Operand& o,
                         const arch::Choices& choices, DType element);

}  // namespace tessera::core
