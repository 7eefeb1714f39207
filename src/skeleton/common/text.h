// Pieces of the loops that skeletons are made of.
#pragma once

#include <string>
#include <vector>

#include "rules/rules.h"

#include "pointwise/pointwise.h"

namespace tessera::skeleton {

/// "t0[offset + i * 768 + j]": the element of a view at these indices, one a dim.
std::string element(const rules::TensorView& v, const std::vector<std::string>& indices);
/// "load(...)" of it: a float.
std::string load(const rules::TensorView& v, const std::vector<std::string>& indices);
/// "store(&..., value);\n".
std::string store(const rules::TensorView& v, const std::vector<std::string>& indices,
                  const std::string& value);
/// Statements that take `item` apart into one index a dim of this shape, `prefix`0 first.
std::string split_item(const std::vector<int64_t>& shape, const std::string& prefix,
                       std::vector<std::string>& names);
/// The loads of the operands as `x0`, ..., then the DAG; the results' expressions.
std::string evaluate(const pointwise::Dag& dag, const std::vector<std::string>& operands,
                     const std::string& prefix, std::vector<std::string>& results);
/// Lines of `text` with two more spaces before each.
std::string indented(const std::string& text, int levels = 1);

}  // namespace tessera::skeleton
