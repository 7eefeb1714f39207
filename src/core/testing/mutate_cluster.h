// Kernels of clusters with one mistake each in what their blocks do for each other.
#pragma once

#include "core/testing/mutate.h"

namespace tessera::core::testing {

/// Every operator at every place that it applies to, besides those of mutants(). Empty for a kernel
/// without clusters.
std::vector<Mutant> cluster_mutants(const Kernel& kernel);

}  // namespace tessera::core::testing
