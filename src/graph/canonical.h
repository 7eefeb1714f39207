// The canonical form: meaning-preserving ATen-to-ATen rewrites, one file a rewrite family, run to a
// fixed point.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"

namespace tessera::graph {

struct Rewrite {
  std::string what;                // "tanh-GELU written out"
  std::string result;              // name of the new node
  std::vector<std::string> nodes;  // the nodes that it stands for
};

/// Recognizes composed spellings by their meaning (tanh- and erf-GELU, SiLU, softmax, attention
/// with causal or additive mask and repeated key/value heads, RMSNorm, LayerNorm, linear from
/// matmul + transpose + bias), folds scales and no-ops (dropout p = 0, conversions to the same
/// dtype, detach), merges linears that share their input (their weights concatenated by prepack
/// nodes), drops dead nodes. Returns what it did, in order.
std::vector<Rewrite> canonicalize(Graph& g);

}  // namespace tessera::graph
