// Loads from tensors into registers, in a kernel of attention: they stay within their tensors.
#pragma once

#include "check/attend_products.h"

namespace tessera::check {

/// Whether a condition of a load is that one of its indices is below the tensor's extent.
bool bounds_an_index(const core::Kernel& kernel, const core::GlobalAt& at, Term condition);

/// Of all roles. The blocks of keys are known to begin at key 0 or behind; that tiles are those of
/// the output is asked apart. Where a load is not known to stay inside: told to the products, as
/// placement.
void loads_stay_inside(const core::Kernel& kernel, AttendProducts& products);

}  // namespace tessera::check
