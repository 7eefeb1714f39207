// The meaning of attention: rows of a tensor, weighted by the softmax of scores.
//
//   O[b, h, i, e] = sum(softmax(where(j <= i + TK - TQ, 0.125 * sum(Q[b, h, i, d] * K[b, h * G //
//   H, j, d], d), -inf), j)
//                       * V[b, h * G // H, j, e], j)
//
// softmax(s, j) is exp(s) over the sum of exp(s) of all j. A score of -inf is none: its key is not
// seen. Scores may be capped: cap * tanh(0.125 * sum(..) / cap). What is scaled and capped may have
// a mask tensor added: `+ M[b, h, i, j]`, or `+ where(M[b, h, i, j], 0, -inf)` of truth values. A
// row that sees no key is NaN, or 0 where the softmax says so: softmax(s, j, 0).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/kernel.h"
#include "syntax/ast.h"

namespace tessera::check {

/// A tensor's element with an index a dimension, as expressions over the names of indices and the
/// kernel's parameters.
struct IndexedBy {
  core::TensorId tensor;
  std::vector<syntax::Expr> at;
  /// The dimension whose index is this name alone; -1: none.
  [[nodiscard]] int place(std::string_view name) const;
};

struct Attention {
  IndexedBy o, q, k, v;
  std::string row, column, key, depth;  // names: i, e, j, d. The others of `o` are batches
  double scale = 1;                     // of the scores, or of their tanh
  double inner = 0;                     // above 0: scores are scale * tanh(inner * sum)
  std::optional<syntax::Expr> seen;     // a predicate on row and key; none: every key is seen
  std::optional<IndexedBy> mask;        // by batches, row and key
  bool adds = false;                    // the mask is added; else it tells which keys are seen
  bool empty_is_zero = false;           // a row that sees no key: else NaN
};

/// Terms for the names of indices.
using Names = std::map<std::string, core::Term, std::less<>>;
/// The expression as a term of the kernel's pool; an invalid term where it is none, or has an
/// unknown name.
core::Term term_of(const core::Kernel& kernel, const syntax::Expr& e, const Names& names);

/// The expression's value, of names and parameters by name; nothing where one is not there.
using Numbers = std::map<std::string, int64_t, std::less<>>;
std::optional<int64_t> value_of(const syntax::Expr& e, const Numbers& numbers);

/// Whether the right side of an equation is of this form at all: it calls softmax.
bool has_softmax(const syntax::Expr& e);

/// `wrong` makes the diagnostic of a text that says something else.
Result<Attention> attention_of(const core::Kernel& kernel, const syntax::Expr& left,
                               const syntax::Expr& right,
                               const std::function<Diagnostic(std::string_view)>& wrong);

}  // namespace tessera::check
