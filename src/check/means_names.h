// An equation's text before it is known what its names are: its sides, indices of elements, and
// functions.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel.h"
#include "pointwise/pointwise.h"
#include "syntax/ast.h"

namespace tessera::check {

/// `A[i, k]`, `X[0, j]`, `X[i, j % 64]`, `B[j + 32, k]`: an index a dimension.
struct NamedElement {
  core::TensorId tensor;
  std::vector<std::string> names;  // empty: a number
  std::vector<int64_t> numbers;    // itself, or what is added to the name
  std::vector<int64_t> moduli;     // 0: no remainder is taken
  [[nodiscard]] bool has(std::string_view name) const {
    return std::find(names.begin(), names.end(), name) != names.end();
  }
  /// Without what is added to names.
  [[nodiscard]] NamedElement plain() const {
    NamedElement out = *this;
    for (std::size_t d = 0; d < names.size(); ++d)
      if (!names[d].empty()) out.numbers[d] = 0;
    return out;
  }
  /// Without remainders too.
  [[nodiscard]] bool as_it_is() const {
    return *this == plain() && moduli == std::vector<int64_t>(moduli.size(), 0);
  }
  friend bool operator==(const NamedElement&, const NamedElement&) = default;
};

/// An index, of a name or none.
struct NamedIndex {
  std::string name;
  int64_t number = 0, modulus = 0;
};

/// `j`, `3`, `j + 32`, `j - 32`, `j % 64`, `(j - 32) % 64`; nothing for anything else.
std::optional<NamedIndex> index_of(const syntax::Expr& e);

/// A function of an equation before it is known what its names are.
struct NamedCase {
  struct NamedRead {
    NamedElement element;
    bool sum = false;
    friend bool operator==(const NamedRead&, const NamedRead&) = default;
  };
  struct NamedCondition {
    NamedIndex index;
    int64_t below = 0;
    bool holds = true;
  };
  std::vector<NamedCondition> where;
  pointwise::Dag value;
  std::vector<NamedRead> reads;
};

/// Both sides of an equation; or what is wrong with its text.
tl::expected<std::pair<syntax::Expr, syntax::Expr>, std::string> sides_of(const std::string& text);

/// Functions that the language names otherwise than pointwise/functions/.
std::string_view function_of(std::string_view name);

}  // namespace tessera::check
