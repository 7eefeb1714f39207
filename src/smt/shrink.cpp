#include "smt/shrink.h"

namespace tessera::smt {
namespace {

using Wide = __int128;

void shrink_one(Shrinkable& c, const std::function<bool()>& holds) {
  const Wide count = (Wide{c.value} - c.target) / c.step;  // its sign is the side
  const auto at = [&](Wide n) {
    c.value = static_cast<int64_t>(c.target + n * c.step);
    return holds();
  };
  if (count == 0) return;
  if (at(0)) return;
  // It does not hold at `near` steps from the target, and does at `far`.
  Wide near = 0, far = count;
  while (far - near > 1 || near - far > 1) {
    const Wide middle = near + (far - near) / 2;
    (at(middle) ? far : near) = middle;
  }
  c.value = static_cast<int64_t>(c.target + far * c.step);
}

}  // namespace

void shrink(std::vector<Shrinkable>& point, const std::function<bool()>& holds) {
  for (int round = 0; round < 2; ++round)
    for (Shrinkable& c : point) shrink_one(c, holds);
}

}  // namespace tessera::smt
