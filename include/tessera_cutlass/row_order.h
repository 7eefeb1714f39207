// The order of rows in which an M-major operand of 4-byte elements goes through registers to wgmma,
// and the load that it allows.
//
// A lane gives wgmma two rows of A (lane / 4 and 8 more) at two k (lane % 4 and 4 more). Which row
// of A those are is free, as long as the accumulators are taken for the same. Here a lane's two
// rows are neighbours, read by one 8-byte load, and the rows of 16 lanes lie in two 16-byte chunks
// that are 64 bytes apart. Shared memory has 32 rows of A at one k in 128 bytes, in the 128-byte
// swizzle: its exclusive or with the four k of those lanes fills all 32 banks once.
#pragma once

#include "cute/algorithm/copy.hpp"
#include "cute/atom/copy_atom.hpp"
#include "cute/tensor.hpp"

namespace tessera {

/// Two neighbouring rows at one k, 8 bytes of shared memory. In assembly: nvcc 13.0 turns a
/// 64-bit load of two floats that a loop carries to wgmma's registers into two copies of the first.
struct LoadRowPair {
  using SRegisters = uint64_t[1];
  using DRegisters = uint32_t[2];
  CUTE_HOST_DEVICE static void copy(uint64_t const& source, uint32_t& low, uint32_t& high) {
#if defined(__CUDA_ARCH__)
    asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];"
                 : "=r"(low), "=r"(high)
                 : "r"(cute::cast_smem_ptr_to_uint(&source)));
#endif
  }
};

}  // namespace tessera

namespace cute {
template <>
struct Copy_Traits<tessera::LoadRowPair> {
  using ThrID = Layout<_1>;
  using SrcLayout = Layout<Shape<_1, Int<64>>>;
  using DstLayout = Layout<Shape<_1, Int<64>>>;
  using RefLayout = SrcLayout;
};
}  // namespace cute

namespace tessera {

/// wgmma's row (lane / 4: 3 bits, second row: 1 bit, warp: 2 bits, warpgroup) -> row of A.
template <int WarpGroups>
using RowOrder = cute::Layout<
    cute::Shape<cute::_2, cute::_2, cute::_2, cute::_2, cute::_2, cute::_2, cute::Int<WarpGroups>>,
    cute::Stride<cute::_2, cute::_16, cute::_4, cute::_1, cute::_8, cute::_32, cute::_64>>;

}  // namespace tessera
