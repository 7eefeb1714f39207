// A function of single elements as a lambda of Python, and back.
//
//   lambda x0, x1: mul((t0 := add(x0, x1)), t0)
//
// Calls name the records of pointwise/functions/. A value that is used more than once is named by
// `:=` where it is computed. Several results are a tuple.
#pragma once

#include <string>

#include "diag/result.h"
#include "diag/source.h"

#include "pointwise/pointwise.h"
#include "syntax/ast.h"

namespace tessera::core {

/// With parameters x0, x1, ... for `inputs` operands, or as many as the DAG has, if these are more.
std::string lambda_text(const pointwise::Dag& dag, std::size_t inputs);

/// Operand i is parameter i. TS0812 with the place of what is no function of single elements.
Result<pointwise::Dag> read_lambda(const Source& source, const syntax::Expr& e);

}  // namespace tessera::core
