// Dims that no single stride can describe, on their way through a chain of views.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "graph/operand.h"

namespace tessera::graph {

/// One digit of an index: how many values it takes, and by how many elements each moves.
struct Digit {
  int64_t size = 1;
  int64_t stride = 0;
};

/// A layout whose dims are numbers in a mixed radix, the outermost digit first. Merging (b, h)
/// where l lies between them in memory gives a dim of two digits, which a later view may take
/// apart.
struct DigitLayout {
  std::vector<std::vector<Digit>> dims;

  static DigitLayout of(const Operand& o);
  [[nodiscard]] std::vector<int64_t> shape() const;
  /// A stride a dim; nullopt where one has digits that do not merge.
  [[nodiscard]] std::optional<std::vector<int64_t>> strides() const;
  /// The same elements in the same order under other dims; nullopt where a dim would end inside a
  /// digit that its size does not divide.
  [[nodiscard]] std::optional<DigitLayout> reshaped(const std::vector<int64_t>& shape) const;
};

}  // namespace tessera::graph
