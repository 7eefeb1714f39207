// Whether a kernel is one that the machine can be asked to run: every op by itself, where it
// stands.
//
// It holds arguments to the forms of arch/instruction.h, registers to their declarations and to the
// fragments of matrix instructions, shared memory to what TMA and wgmma read of it, roles to the
// block and its registers, and each instruction to the threads that come to it. What it asks of
// integers is proved for all values of the parameters (term/query.h).
//
// It does not look at what happens between ops: races, deadlocks, unfinished copies, elements that
// are not those which the author means, and global memory beyond a tensor's extents are left to the
// checker. Tensors are taken to begin at multiples of 16 bytes, shared memory at one of 1024.
// docs/core.md lists all that is refused.
#pragma once

#include "arch/arch.h"

#include "core/kernel.h"

namespace tessera::core {

inline constexpr Code bad_storage{"TS0813", "core.bad_storage"};
inline constexpr Code bad_argument{"TS0814", "core.bad_argument"};
inline constexpr Code bad_registers{"TS0815", "core.bad_registers"};
inline constexpr Code bad_matrix{"TS0816", "core.bad_matrix"};
inline constexpr Code wrong_issuer{"TS0817", "core.wrong_issuer"};
inline constexpr Code bad_structure{"TS0818", "core.bad_structure"};
inline constexpr Code undecided{"TS0819", "core.undecided"};

/// Everything that is wrong, in the order of the text; nothing: the kernel is right. TS0819 alone
/// is a warning: something that could be neither proved nor refuted.
std::vector<Diagnostic> verify(const Kernel& k, const arch::Arch& arch);

}  // namespace tessera::core
