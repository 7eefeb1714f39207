// Fused attention with an online softmax: softmax(q k^T * scale + mask) v, tile by tile, nothing of
// size T x S in memory.
//
// Two tile programs: on host a tile belongs to one thread; on a GPU products are matrix
// instructions whose first operand and result lie in registers, and keys and values pass through
// shared memory.
#pragma once

#include <optional>

#include "tile/build/common.h"

namespace tessera::tile::build {

struct AttentionProblem {
  std::string name = "attention";
  int64_t batch = 1, heads = 1, kv_heads = 1;  // heads is a multiple of kv_heads (grouped queries)
  int64_t queries = 1, keys = 1, head_dim = 1, value_dim = 1;
  double scale = 1;
  bool causal = false;        // query t sees keys s <= t + causal_offset
  int64_t causal_offset = 0;  // PyTorch's is_causal: 0 (aligned at the top left)
  /// A row that sees no key gives 0 (as scaled_dot_product_attention does) instead of NaN (as a
  /// written-out softmax does).
  bool empty_rows_are_zero = false;
  /// On a GPU, for storage of float32: tf32 products, or fp32 accuracy from three of them.
  Precision precision = Precision::fp32;
  std::vector<Tensor> tensors;  // the launch's order: inputs, then the output
  StridedView q, k, v, o;       // strides over [batch, heads or kv_heads, queries or keys, dim]
  std::optional<StridedView>
      mask;  // additive; strides over [batch, heads, queries, keys], 0 where broadcast
  bool mask_is_boolean = false;  // a mask of bool: false excludes
};

struct AttentionConfig {
  int64_t block_queries = 64;  // GPU: 16 * row_tiles a warp
  int64_t block_keys = 64;     // a multiple of 16
  // GPU only.
  int row_tiles = 0;   // of 16 queries a warp: more of them share a read of keys and values
  int stages = 1;      // 1: keys and values have a slot each, filled while the other is used; n: n
  int min_blocks = 1;  // of a multiprocessor: bounds the registers
  bool shared_queries = false;  // queries stay in shared memory, not in registers
  bool longest_first = false;   // causal: the last queries of all heads first, then the others
};
Json to_json(const AttentionConfig& c);
AttentionConfig attention_config_from_json(const Json& j);

Result<Program> attention(const AttentionProblem& p, const AttentionConfig& c, Target target);
std::vector<AttentionConfig> attention_configs(const AttentionProblem& p, const Limits& limits);

/// The GPU's part of the two above (attention_gpu.cpp).
Result<Program> attention_gpu(const AttentionProblem& p, const AttentionConfig& c);
std::vector<AttentionConfig> attention_gpu_configs(const AttentionProblem& p, const Limits& limits);

}  // namespace tessera::tile::build
