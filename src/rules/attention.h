// The body of `attention` patterns: O = softmax(scale * Q K^T + mask) V, query head h reads
// key/value head h / group.
#pragma once

#include <optional>

#include "rules/rules.h"

namespace tessera::rules {

struct AttentionBody : PatternBody {
  int64_t batch = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t q_length = 0;
  int64_t kv_length = 0;
  int64_t head_dim = 0;
  int64_t value_dim = 0;
  double scale = 0;
  /// Query i sees keys 0 .. i (aligned at the top left, as torch's is_causal).
  bool causal = false;
  TensorView q;  // [batch, heads, q_length, head_dim]
  TensorView k;  // [batch, kv_heads, kv_length, head_dim]
  TensorView v;  // [batch, kv_heads, kv_length, value_dim]
  /// Added to the scaled scores (floating) or true where attended (boolean): [batch, heads,
  /// q_length, kv_length].
  std::optional<TensorView> mask;
  TensorView output;  // [batch, heads, q_length, value_dim], whatever order its storage has

  [[nodiscard]] Json to_json() const override;
};

}  // namespace tessera::rules
