// What masks attention's scores: terms that are added to them or replace them.
#pragma once

#include <cstdint>
#include <vector>

#include "rewrite/rewrite.h"

namespace tessera::rewrite {

/// A masked score this low has weight 0 in any precision, unless its whole row is masked.
inline constexpr double low_enough = -1e8;

/// Scores vanish beside a number so low, in float64 too: filling with it is adding it.
inline constexpr double absorbs_scores = -1e30;

/// One mask term: added to the scores, or (`replaces`) scores become `masked` where the condition
/// equals `where`.
struct MaskTerm {
  ValueId value;
  bool replaces = false;
  bool where = true;
  double masked = 0;
};

enum class MaskKind { none, causal, other, unknown };

/// What is known of the last two dims of the value that a mask is a view of whole matrices of
/// (itself, most often), the same for all batches and heads.
const Json& facts_of_mask(const Graph& g, ValueId mask);

/// What is known of a view of one whole matrix is known of the matrix: patterns have it as input.
void tell_base(Graph& g, ValueId mask);

/// What facts of truth values say of their negation.
Json negated(const Json& facts);

/// What all terms together do to scores [rows, columns]; unknown where an element of a term is.
MaskKind classify(const Graph& g, const std::vector<MaskTerm>& masks, int64_t rows,
                  int64_t columns);

/// Whether the terms, which together are of this kind, may take every key from a query by -inf.
bool may_leave_no_key(const Graph& g, const std::vector<MaskTerm>& masks, MaskKind kind,
                      int64_t rows, int64_t columns);

}  // namespace tessera::rewrite
