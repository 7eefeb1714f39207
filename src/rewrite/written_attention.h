// Attention that is written out: softmax(scale * Q K^T + mask) V, the scores capped by a tanh or
// not.
//
// Factors of queries and keys become the scores': kernels of attention multiply the product by it.
// Scores are infinite, then, where the product without the factor is, so within the factor of the
// largest number (docs/measuring.md).
#pragma once

#include "rewrite/score_mask.h"

namespace tessera::rewrite {

/// [..., length, width] of one element type; the same dims before the last two.
struct WrittenAttention {
  ValueId q, k, v;
  bool k_is_transposed = false;  // `k` is [..., width, length]
  int64_t queries = 0, keys = 0;
  double scale = 1;  // of the scores, before the masks
  double cap = 0;    // scores are cap * tanh(scale * Q K^T / cap); 0: as they are
  std::vector<MaskTerm> masks;
  std::vector<NodeId> nodes;  // the product with the values first; nothing else needs their results
  NodeId product;             // of queries and keys
};

/// What ends in `last`, a product of weights and values; nothing where it is no attention.
std::optional<WrittenAttention> read_attention(const Graph& g, NodeId last);

}  // namespace tessera::rewrite
