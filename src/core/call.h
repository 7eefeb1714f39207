// The arguments of a call in a kernel's text, by the names that the call gives them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "diag/result.h"
#include "diag/source.h"

#include "syntax/ast.h"

namespace tessera::core {

/// What a call takes. A name of `optional` may be left out.
struct Signature {
  std::string_view name;
  std::vector<std::string_view> positional;
  std::vector<std::string_view> keywords;
  std::vector<std::string_view> optional = {};
};

/// A call taken apart; the expressions are those of the tree.
class Call {
 public:
  /// TS0812 for an argument that is missing, too many, given twice, or of no such name.
  static Result<Call> bind(const Source& source, const Signature& signature, const syntax::Call& c,
                           Span span);
  [[nodiscard]] const syntax::Expr* find(std::string_view name) const;
  [[nodiscard]] const syntax::Expr& operator[](std::string_view name) const;

 private:
  std::map<std::string, const syntax::Expr*, std::less<>> given_;
};

/// The name, where the expression is one; else null.
const std::string* name_of(const syntax::Expr& e);
/// A call of a plain name, which `name` becomes; else null.
const syntax::Call* call_of(const syntax::Expr& e, std::string_view* name);

}  // namespace tessera::core
