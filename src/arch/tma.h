// The tensor memory accelerator: what a tensor map may say, how its boxes lie in shared memory and
// how many bytes they count (PTX ISA, "Tensors" and "cp.async.bulk.tensor"; CUDA driver API,
// cuTensorMapEncodeTiled). The instructions are in arch/instructions/tma.cpp.
//
// Im2col maps, element strides other than 1 and interleaved layouts have no records: nothing that
// tessera writes uses them.
#pragma once

#include <string_view>
#include <vector>

#include "arch/shared_tile.h"
#include "numeric/dtype.h"

namespace tessera::arch {

/// What a load puts where a box leaves its tensor: zeros, or of floating types NaN.
enum class OutOfBounds : uint8_t { zeros, nan };

/// A tensor map; dimension 0 is the contiguous one. A box of it lies in shared memory without gaps,
/// dimension 0 fastest, swizzled.
struct TensorMap {
  DType element = DType::bfloat16;
  std::vector<int64_t> extents;  // elements
  std::vector<int64_t> strides;  // bytes, of dimensions 1 and up: one less than extents
  std::vector<int64_t> box;      // elements
  SwizzleMode swizzle = SwizzleMode::none;
  OutOfBounds fill = OutOfBounds::zeros;

  [[nodiscard]] int rank() const { return static_cast<int>(extents.size()); }
  /// What a load of one box counts at its mbarrier, in each block that gets it, also where the box
  /// leaves the tensor; what a store reads of shared memory.
  [[nodiscard]] int64_t box_bytes() const;
  /// Coordinates in the box to elements, before the swizzle.
  [[nodiscard]] Layout box_layout() const;
  /// Of the box in shared memory.
  [[nodiscard]] int64_t shared_alignment() const { return alignment_of(swizzle); }
};

struct TmaLimits {
  int max_rank = 5;
  int64_t max_extent = int64_t{1} << 32;
  int64_t max_box_extent = 256;
  int64_t inner_box_multiple = 16;        // bytes
  int64_t stride_multiple = 16;           // bytes
  int64_t max_stride = int64_t{1} << 40;  // bytes, exclusive
  int64_t base_alignment = 16;            // bytes, of the tensor
  int64_t map_alignment = 64;             // bytes, of the map itself
  int64_t map_bytes = 128;
};
constexpr TmaLimits tma_limits;

/// Fails with the limit that the map breaks. `base`: what the tensor's address is a multiple of.
Status check(const TensorMap& map, int64_t base);

/// CUtensorMapDataType's name for elements of this type (`rounded`: float32 that loads round to
/// tf32); bytes for what it has no type of.
std::string_view driver_type(DType element, bool rounded = false);

/// The operations that a reducing store has for elements of this type; empty: none.
std::vector<std::string_view> reductions(DType element);

}  // namespace tessera::arch
