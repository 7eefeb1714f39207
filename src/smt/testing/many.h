// How many random cases a test tries.
#pragma once

#include <cstdlib>

namespace tessera::smt::testing {

/// Twenty times as many under `./dev test all`.
inline int many(int usual) {
  return std::getenv("TESSERA_TEST_ALL") != nullptr ? 20 * usual : usual;
}

}  // namespace tessera::smt::testing
