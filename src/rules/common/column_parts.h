// A product's result written in parts of its columns: regions whose one output is a concatenation.
#pragma once

#include "rules/common/matrix.h"
#include "rules/common/region.h"
#include "rules/gemm.h"

namespace tessera::rules {

/// The sets of nodes from the product on, each with one output as large as the product's result and
/// a concatenation on the way; the largest first.
std::vector<NodeSet> concatenating_regions(const Flow& flow, const Product& p);

struct ColumnParts {
  ValueId output;  // [..., n], row-major
  /// With shapes, but with operands that no tensor list numbers yet: `reads` has them.
  std::vector<ColumnPart> parts;
  std::vector<std::vector<Read>> reads;      // of each part, over `shapes`
  std::vector<std::vector<int64_t>> shapes;  // of each part
};

/// The region's output in parts. An error where its columns fall apart otherwise: into other than
/// runs of columns, each by itself or as halves of groups that read one another.
Result<ColumnParts> column_parts(const Flow& flow, const Product& p, const NodeSet& set);

}  // namespace tessera::rules
