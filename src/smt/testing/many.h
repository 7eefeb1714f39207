// How many random cases a test tries.
#pragma once

#include "base/thorough.h"

namespace tessera::smt::testing {

/// Twenty times as many under `./dev test all`.
inline int many(int usual) {
  return thorough() ? 20 * usual : usual;
}

}  // namespace tessera::smt::testing
