// Text to tree. Everything that is wrong is told, one error a statement; what is Python but not in
// the language (while, class, try, generators, ...) is told as such.
#pragma once

#include "syntax/ast.h"
#include "syntax/token.h"

namespace tessera::syntax {

struct Parsed {
  Module module;  // the statements that are right
  std::vector<Diagnostic> errors;
};
Parsed parse(const Source& source);
/// The whole text is one expression.
Result<Expr> parse_expression(const Source& source);

}  // namespace tessera::syntax
