// Attention as the core has it, for tests: O = softmax(scale Q K^T) V of 16-bit elements, scores in
// registers, row maxima and sums kept as the keys come (Dao et al., FlashAttention; the overlap of
// two products and one softmax is that of Shah et al., FlashAttention-3). One warpgroup loads, the
// others own 64 queries each.
#pragma once

#include "core/kernel.h"

namespace tessera::core::testing {

struct AttentionShape {
  int64_t queries = 128;   // of a block: 64 a consumer warpgroup
  int64_t keys = 128;      // of a step, a multiple of 16
  int64_t head_dim = 128;  // a multiple of 64
  int stages = 2;
  bool causal = false;
  /// The two warpgroups issue their products in turns. With two consumers.
  bool turns = true;
  DType element = DType::bfloat16;
  [[nodiscard]] int consumers() const { return static_cast<int>(queries / 64); }
};

/// Parameters: TQ and TK (queries and keys of a head, with causal TQ <= TK), H, G (heads of keys
/// and values, a divisor of H), B. Tensors Q[B, H, TQ, D], K and V[B, G, TK, D], O[B, H, TQ, D],
/// row major.
Result<Kernel> attention(const AttentionShape& s = {});

}  // namespace tessera::core::testing
