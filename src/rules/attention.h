// The body of `attention` patterns: O = softmax(scale * Q K^T + mask) V, query head h reads
// key/value head h / group.
#pragma once

#include <optional>

#include "rules/rules.h"

namespace tessera::rules {

/// Which keys a query sees, by their distance: key j of query i where lower <= j - i <= upper, both
/// within 2^31. A bound that is missing cuts nothing.
struct Band {
  std::optional<int64_t> lower, upper;

  [[nodiscard]] Json to_json() const;
  [[nodiscard]] std::string text() const;  // "band -255..0"
  /// The first key that a query sees, of so many, and the end.
  [[nodiscard]] std::pair<int64_t, int64_t> keys_of(int64_t query, int64_t keys) const;
};

struct AttentionBody : PatternBody {
  int64_t batch = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t q_length = 0;
  int64_t kv_length = 0;
  int64_t head_dim = 0;
  int64_t value_dim = 0;
  double scale = 0;
  /// Above 0: scaled scores s become softcap * tanh(s / softcap), before the mask.
  double softcap = 0;
  /// Query i sees keys 0 .. i (aligned at the top left, as torch's is_causal).
  bool causal = false;
  TensorView q;  // [batch, heads, q_length, head_dim]
  TensorView k;  // [batch, kv_heads, kv_length, head_dim]
  TensorView v;  // [batch, kv_heads, kv_length, value_dim]
  /// Added to the scaled scores (floating) or true where attended (boolean): [batch, heads,
  /// q_length, kv_length].
  std::optional<TensorView> mask;
  /// What the mask says, where its content is known (guarded by its facts) and is a band in which
  /// every query sees a key: kernels may go by it and not read the mask.
  std::optional<Band> band;
  TensorView output;  // [batch, heads, q_length, value_dim], whatever order its storage has

  [[nodiscard]] Json to_json() const override;
};

/// Which part of all scores a band leaves; 1 without one.
double seen_share(const AttentionBody& body);

}  // namespace tessera::rules
