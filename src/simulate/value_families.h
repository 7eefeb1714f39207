// The tables of what instructions do with values, a file each.
#pragma once

#include <span>

#include "simulate/values.h"

namespace tessera::simulate {

std::span<const Semantics> memory_values();   // values_memory.cpp: loads, stores, atomics
std::span<const Semantics> copy_values();     // values_copy.cpp: cp.async, bulk copies
std::span<const Semantics> tma_values();      // values_tma.cpp: boxes of tensors
std::span<const Semantics> matrix_values();   // values_matrix.cpp: ldmatrix, stmatrix
std::span<const Semantics> product_values();  // values_product.cpp: wgmma, mma.sync
std::span<const Semantics> warp_values();     // values_warp.cpp: between lanes
std::span<const Semantics> no_values();       // values.cpp: synchronization and hints alone

}  // namespace tessera::simulate
