// Tree to text, in one form: four spaces a level, brackets where precedence needs them. The
// parser's inverse: parse(to_string(m)) == m.
#pragma once

#include <string>

#include "syntax/ast.h"

namespace tessera::syntax {

std::string to_string(const Expr& e);
std::string to_string(const Module& m);

}  // namespace tessera::syntax
