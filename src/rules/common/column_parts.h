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
  ValueId output;  // its storage is [m, n], row-major
  /// Without operands, which no list of tensors has yet: those of part i are reads[i], over
  /// shapes[i].
  std::vector<ColumnPart> parts;
  std::vector<std::vector<Read>> reads;
  std::vector<std::vector<int64_t>> shapes;
};

/// The region's output in parts. An error where its columns fall apart otherwise: into other than
/// runs of columns, each by itself or as halves of groups that read one another.
Result<ColumnParts> column_parts(const Flow& flow, const Product& p, const NodeSet& set);

}  // namespace tessera::rules
