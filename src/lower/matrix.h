// The fixed bits of a descriptor of wgmma for a matrix in shared memory.
//
// The last two modes of the storage are the matrix's: m or n, then k; what comes before are slots.
// An instruction reads `mn` x `k` elements from the place that its argument names. Offsets between
// the atoms (arch/shared_tile.h) are read off the storage's layout, and every element that the
// instruction may read is held to them.
#pragma once

#include "arch/element.h"

#include "core/kernel.h"

namespace tessera::lower {

struct MatrixRead {
  arch::Element element = arch::Element::bf16;
  arch::Major major = arch::Major::k;
  int64_t mn = 64;  // elements that the instruction reads
  int64_t k = 16;
};

/// Of operand `a` or `b` of a wgmma; TS0850 for an instruction that has no such descriptor.
Result<MatrixRead> matrix_read(const core::Issue& issue, std::string_view operand);

/// Bits 16 to 31 and 32 to 63 of the descriptor; bits 0 to 13 are the address / 16.
struct MatrixBits {
  uint32_t low = 0;
  uint32_t high = 0;
};
/// TS0852 unless the storage has the matrix as its swizzle's atoms lie, and the place is a multiple
/// of 8 elements along m or n and along k of what one instruction reads.
Result<MatrixBits> matrix_bits(const core::Kernel& k, const core::SharedAt& at,
                               const MatrixRead& read);

}  // namespace tessera::lower
