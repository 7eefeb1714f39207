// Whether the elements that a meaning reads exist wherever those of its output do.
#pragma once

#include <string>

#include "check/means.h"
#include "core/kernel.h"

namespace tessera::check {

/// What is not known of extents; nothing where all tensors have the elements that the meaning asks
/// them for, and outputs have no others; of a sum of elements its tensor has no others either.
/// `means` is no attention.
std::string misfit(const core::Kernel& kernel, const Means& means);
/// The same of a product's factors: they have the output's rows, columns and batches at least, and
/// one extent of k.
std::string misfit_of_factors(const core::Kernel& kernel, const Means& means);

}  // namespace tessera::check
