// All terms of a kernel, to look at or to exchange.
#pragma once

#include <functional>

#include "core/kernel.h"

namespace tessera::core {

/// Calls `f` with each term of the kernel's head, storages and ops, bounds of symbols aside. It may
/// put another one in its place.
void for_each_term(Kernel& kernel, const std::function<void(Term&)>& f);

/// The kernel with a pool of its own that holds its terms alone, made in the same order. What is
/// made of it does not depend on what else has been asked of the kernel's pool.
Kernel in_own_pool(const Kernel& kernel);

}  // namespace tessera::core
