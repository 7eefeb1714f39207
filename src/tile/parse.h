// Text to Program: the inverse of print.h, for texts of the elaborated core.
#pragma once

#include "diag/source.h"
#include "tile/program.h"

namespace tessera::tile {

inline constexpr Code bad_kernel_text{"TS0810", "language.bad_kernel"};

/// The kernels of the text, in order. All of them take the same tensors. Every op's type rule runs
/// as it is read; an error has the place of the op.
Result<Program> parse(const Source& source);

}  // namespace tessera::tile
