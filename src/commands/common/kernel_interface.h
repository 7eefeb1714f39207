// What a caller of a kernel has to know: its integers with what they may be, and its tensors.
#pragma once

#include "base/json.h"

#include "core/kernel.h"

namespace tessera::commands {

/// tessera.interface/1, in the order of a launch (include/tessera/kernel.h), without workspaces:
/// {"ints": [{"name", "lower", "below", "multiple", "residue"}], lower <= value < below and value =
///   residue modulo `multiple`,
///  "tensors": [{"name", "dtype" (PyTorch's name), "access": "input" or "output", "extents",
///   "strides"}], in elements}.
/// Bounds, extents and strides are numbers, or texts of index terms over the integers
/// (docs/terms.md); a bound that is not known is null.
Json interface_of(const core::Kernel& kernel);

}  // namespace tessera::commands
