// A smaller point at which something still holds, so that a witness is easy to read.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace tessera::smt {

/// A coordinate of a point: it may take the values target + step * n for n >= 0, or n <= 0, on the
/// side of `target` on which it lies.
struct Shrinkable {
  int64_t value = 0;
  int64_t target = 0;
  int64_t step = 1;
};

/// Moves every coordinate towards its target, in order and twice, by halving the distance; `holds`
/// is true of the result as it was of `point`. The result is small, not the least.
void shrink(std::vector<Shrinkable>& point, const std::function<bool()>& holds);

}  // namespace tessera::smt
