#include "check/turn_sum.h"

#include <algorithm>

#include "base/text.h"

namespace tessera::check {
namespace {

constexpr std::array<const char*, 4> products = {
    "the high parts", "the low part of A by the high part of B",
    "the high part of A by the low part of B", "the low parts"};

bool has(Part p, int low) {
  return p == Part::whole || (p == Part::low) == (low == 1);
}

}  // namespace

std::optional<TurnSum::Wrong> TurnSum::add(const Operand& a, const Operand& b, int64_t from) {
  const bool whole = a.part == Part::whole && b.part == Part::whole;
  parts_ |= !whole;
  for (const int64_t step : a.k)
    for (int which = 0; which < 4; ++which) {
      if (!has(a.part, which % 2) || !has(b.part, which / 2)) continue;
      const int64_t k = from + step;
      const bool there = k >= 0 && k < static_cast<int64_t>(times_.size());
      if (there && times_[static_cast<std::size_t>(k)][static_cast<std::size_t>(which)]++ == 0)
        continue;
      const std::string of =
          parts_ ? fmt::format(", {}", products[static_cast<std::size_t>(which)]) : "";
      return Wrong{parts_ ? "a product of parts is summed twice, or belongs to another turn"
                          : "an element of k is summed twice, or belongs to another turn",
                   fmt::format("each k of the turn's {} once", times_.size()),
                   fmt::format("k = corner + {}{}", k, of),
                   "let each step of the descriptor begin where the last one ended"};
    }
  return std::nullopt;
}

std::optional<TurnSum::Wrong> TurnSum::missing() const {
  for (std::size_t k = 0; k < times_.size(); ++k)
    for (std::size_t which = 0; which < 3; ++which) {
      if (times_[k][which] != 0) continue;
      if (!parts_)
        return Wrong{"an element of k is left out of the sum",
                     fmt::format("each k of the turn's {} once", times_.size()),
                     fmt::format("k = corner + {} is missing", k),
                     "let the steps of a turn cover the tile"};
      return Wrong{"a product of parts is left out of the sum",
                   "high by high, low by high and high by low of each k once",
                   fmt::format("k = corner + {}: {} are missing", k, products[which]),
                   "multiply the parts of A and B in all three ways"};
    }
  return std::nullopt;
}

bool TurnSum::lacks_low() const {
  return std::any_of(times_.begin(), times_.end(), [](const auto& t) { return t[3] == 0; });
}

}  // namespace tessera::check
