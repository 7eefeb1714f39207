// Tiles in shared memory as wgmma reads them and TMA writes them (PTX ISA, "Asynchronous Warpgroup
// Level Matrix Shared Memory Layout" and "Tensor Copy: Swizzling modes").
//
// A tile [mn, k] is made of atoms: 8 rows of `width` bytes, one after the other. With k contiguous
// a row holds k of one mn (Major::k), else mn of one k (Major::mn, 16-bit elements alone for
// wgmma). A swizzle then XORs bits 4 and up of the byte ADDRESS with bits 7 and up, so it holds for
// absolute addresses: a tile starts at a multiple of 8 rows, the period of the pattern.
#pragma once

#include "arch/element.h"
#include "diag/result.h"
#include "layout/layout.h"
#include "layout/swizzle.h"

namespace tessera::arch {

enum class SwizzleMode : uint8_t { none, bytes_32, bytes_64, bytes_128 };
enum class Major : uint8_t { k, mn };

/// Bytes of a row of an atom: 16, 32, 64, 128.
int64_t width_of(SwizzleMode s);
/// On byte addresses.
Swizzle swizzle_of(SwizzleMode s);
/// Bytes that the start of a tile is a multiple of. Without a swizzle: what TMA asks for.
int64_t alignment_of(SwizzleMode s);
/// The two bits 62 and 63 of a descriptor.
int code_of(SwizzleMode s);
/// "none", "32B", "64B", "128B"
std::string_view name_of(SwizzleMode s);
std::string_view name_of(Major m);

/// Atoms one after the other, those along mn first.
struct SharedTile {
  Element element = Element::bf16;
  Major major = Major::k;
  SwizzleMode swizzle = SwizzleMode::bytes_128;
  int64_t mn = 0, k = 0;  // elements

  /// Elements of an atom along mn and k.
  [[nodiscard]] int64_t atom_mn() const;
  [[nodiscard]] int64_t atom_k() const;
  /// (mn, k) of one atom to elements, before the swizzle.
  [[nodiscard]] Layout atom() const;
  /// (mn, k) to elements, before the swizzle.
  [[nodiscard]] Layout layout() const;
  [[nodiscard]] int64_t bytes() const { return mn * k * bytes_of(element); }
  /// The byte of element (mn, k) from the tile's start.
  [[nodiscard]] int64_t byte_at(int64_t mn_index, int64_t k_index) const;

  /// The fields of a descriptor, in bytes: what it calls the leading and the stride dimension's
  /// offset. Along k a swizzled tile has no leading one; hardware takes 16 for it.
  [[nodiscard]] int64_t leading_bytes() const;
  [[nodiscard]] int64_t stride_bytes() const;
  /// The 64 bits for the instruction whose operand starts at element (mn, k) of the tile, which
  /// lies at `address` (bytes, a multiple of alignment_of): address >> 4 in bits 0-13, leading in
  /// 16-29, stride in 32-45, the base offset 0 in 49-51, the mode in 62-63.
  [[nodiscard]] uint64_t descriptor(uint32_t address, int64_t mn_index, int64_t k_index) const;
};

/// Fails unless whole atoms make up the tile and its major-ness is one that wgmma has.
Result<SharedTile> shared_tile(Element element, Major major, SwizzleMode swizzle, int64_t mn,
                               int64_t k);

}  // namespace tessera::arch
