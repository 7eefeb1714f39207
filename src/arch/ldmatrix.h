// ldmatrix and stmatrix as data: 1, 2 or 4 matrices of 8 x 8 16-bit elements between shared memory
// and a warp's registers (PTX ISA, "Warp-level matrix load instruction: ldmatrix", "stmatrix").
//
// A matrix is 8 rows of 16 bytes, each at an address of its own. An element is the integer column +
// 8 row + 64 matrix.
#pragma once

#include "arch/instruction.h"
#include "layout/layout.h"

namespace tessera::arch {

struct MatrixMove {
  int matrices = 4;  // 1, 2, 4
  bool transposed = false;
  bool stores = false;

  /// (row, matrix) to the lane whose address is that row's. The addresses of lanes past the last
  /// matrix are not used.
  [[nodiscard]] Layout lane_of_row() const;
  /// (lane, element of its registers) to elements; two neighbours share a 32-bit register, the
  /// first in its low half, and each matrix has a register.
  [[nodiscard]] Layout elements() const;
  [[nodiscard]] const Form& form() const;
  [[nodiscard]] Choices choices() const { return {{"matrices", std::to_string(matrices)}}; }
};

}  // namespace tessera::arch
