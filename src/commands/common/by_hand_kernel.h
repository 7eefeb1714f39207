// A kernel file for `tessera try`: read, checked, lowered, and bound to a pattern's tensors.
#pragma once

#include <string>

#include "pipeline/by_hand.h"

namespace tessera::commands {

/// The kernel's tensors, in their order, are the pattern's inputs and then its outputs. Extents and
/// strides that are integers of the launch take their values from these; leading dims of a tensor
/// that lies without gaps may be one dim of the kernel. TS0054 where they do not fit.
pipeline::FromLanguage kernel_by_hand(const std::string& file, const rules::Pattern& pattern,
                                      const graph::Graph& g, const arch::Arch& arch,
                                      const Json& tunables);

}  // namespace tessera::commands
