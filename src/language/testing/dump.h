// A kernel of the core as text, for tests: storages by their place, terms as they print. Kernels of
// one text are the same but for the names of storages, roles and loops.
#pragma once

#include "core/kernel.h"

namespace tessera::language::testing {

std::string dump(const core::Kernel& k);

}  // namespace tessera::language::testing
