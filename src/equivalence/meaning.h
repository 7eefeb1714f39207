// What a kernel means, computed on residues for a small launch.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "check/means.h"
#include "residue/value.h"
#include "simulate/simulate.h"

namespace tessera::equivalence {

/// Elements of outputs, with the name of the tensor and the place in the order of memory: several
/// places of slices of k, which are added. An element that the meaning makes of more than the
/// tensors have is left out.
using SeeElement = std::function<void(const std::string& tensor, const std::vector<int64_t>& at,
                                      const std::string& name, const residue::Value& value)>;

/// Every element that is meant, for a launch on residues.
void each_element(const core::Kernel& kernel, const check::Means& means,
                  const simulate::Launch& launch, const SeeElement& see);

/// Multiplications that this takes, about.
int64_t products_of(const core::Kernel& kernel, const check::Means& means,
                    const simulate::Launch& launch);

/// The degree of what is meant in the inputs: how often a random point may be a zero of a
/// difference.
int degree_of(const check::Means& means);

}  // namespace tessera::equivalence
