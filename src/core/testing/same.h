// Whether two kernels are the same, each with a pool of its own: the same storages in the same
// order, the same ops in the same order, terms that print alike. Names count; places of text, and
// registers that no op declares, do not.
#pragma once

#include "core/kernel.h"

namespace tessera::core::testing {

bool same(const Kernel& a, const Kernel& b);

}  // namespace tessera::core::testing
