// The rows of attention's output in a small launch.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "check/means.h"
#include "replay/launches.h"

namespace tessera::replay {

/// All elements of the output that differ by the meaning's column alone.
struct OutputRow {
  int64_t elements = 0;  // of the row
  int64_t place = 0;     // of column 0, elements from the tensor's first
  int64_t stride = 0;    // from column to column, elements
  std::vector<std::string> index;
  std::size_t column = 0;  // of `index`, which says it
  /// "O[0, 1, 2, 3]".
  [[nodiscard]] std::string name(const std::string& tensor, int64_t e);
};

/// Sees each row, with the values of the meaning's names for it in `at`; the column is 0.
void each_output_row(const check::Attention& means, const Lie& to, check::Numbers& at,
                     const std::function<void(OutputRow&)>& see);

}  // namespace tessera::replay
