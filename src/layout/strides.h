// Sizes and strides of plain tensors, in elements.
#pragma once

#include <cstdint>
#include <vector>

namespace tessera::layout {

/// How many elements a tensor of this shape has; 1 of no dims.
int64_t numel(const std::vector<int64_t>& shape);

/// Row-major strides of a shape; an extent of 0 counts as 1.
std::vector<int64_t> contiguous_strides(const std::vector<int64_t>& shape);

}  // namespace tessera::layout
