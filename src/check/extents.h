// Whether the meaning's elements exist wherever the output's do.
#pragma once

#include <string>

#include "check/means.h"
#include "core/kernel.h"

namespace tessera::check {

/// What is not known to fit, or empty.
std::string misfit(const core::Kernel& kernel, const Means& means);

}  // namespace tessera::check
