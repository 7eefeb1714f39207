// Where an argument of an instruction lies, as terms: bytes in shared memory, elements of a tensor,
// registers of an array.
#pragma once

#include "core/kernel.h"

namespace tessera::lower {

using term::Term;

/// Bytes of the element from the storage's start (which is a multiple of its swizzle's period), the
/// swizzle applied, in normal form.
Term byte_of(const core::Kernel& k, const core::SharedAt& a);
/// 16 bytes each, from the storage's start, without the swizzle: what a descriptor adds to it. A
/// start that is no multiple of 16 bytes is the business of whoever describes the matrix.
Term chunk_of(const core::Kernel& k, const core::SharedAt& a);
/// Bytes of the mbarrier from the first of its array.
Term byte_of(const core::Kernel& k, const core::BarrierAt& a);
/// Elements from the tensor's first.
Term element_of(const core::Kernel& k, const core::GlobalAt& a);
/// The 32-bit register of a slice's first element; TS0854 unless a register begins there.
Result<Term> register_of(const core::Kernel& k, const core::Slice& a);

/// A term's constant part, for sums that share the rest: `t` == rest + constant.
struct SplitSum {
  Term rest;  // null where t is a constant
  int64_t constant = 0;
};
SplitSum split_sum(Term t);

}  // namespace tessera::lower
