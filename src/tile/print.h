// A Program as text: valid Python, complete, one operation a line. parse.h is its inverse.
#pragma once

#include <string>

#include "tile/program.h"

namespace tessera::tile {

std::string to_string(const Program& p);

/// Two programs are the same where their texts are: what is not printed does not exist.
inline bool operator==(const Program& a, const Program& b) {
  return to_string(a) == to_string(b);
}

}  // namespace tessera::tile
