// What the products of a turn add up of its part of k. An element is x = high + low, so a product
// of elements is four of parts, x y = high high' + high low' + low high' + low low'. Each of the
// first three has to be there once, for each k; the last may be left out.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "check/operand.h"

namespace tessera::check {

class TurnSum {
 public:
  explicit TurnSum(int64_t per_turn) : times_(static_cast<std::size_t>(per_turn)) {}

  struct Wrong {
    std::string message, expected, found, help;
  };
  /// Adds what one product multiplies, whose k corner is `from` beyond the turn's; the answer is
  /// what is wrong with it.
  std::optional<Wrong> add(const Operand& a, const Operand& b, int64_t from);
  /// What is missing when all products have been added.
  [[nodiscard]] std::optional<Wrong> missing() const;
  /// Whether products of low parts are left out.
  [[nodiscard]] bool lacks_low() const;

 private:
  std::vector<std::array<int, 4>> times_;  // by k: high high', low high', high low', low low'
  bool parts_ = false;                     // some product takes parts
};

}  // namespace tessera::check
