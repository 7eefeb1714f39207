#pragma once

#include <cstdlib>

namespace tessera {

/// For tests: whether what takes minutes runs too. `./dev test all` sets TESSERA_TEST_ALL.
inline bool thorough() {
  return std::getenv("TESSERA_TEST_ALL") != nullptr;
}

}  // namespace tessera
