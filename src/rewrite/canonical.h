// The canonical form: meaning-preserving ATen-to-ATen rewrites, one file a rewrite family, run to a
// fixed point.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace tessera::rewrite {

struct Rewrite {
  std::string what;                // "tanh-GELU written out"
  std::string result;              // name of the new node
  std::vector<std::string> nodes;  // the nodes that it stands for
};

/// Gives every op its usual name, recognizes composed spellings by their meaning (tanh- and
/// erf-GELU, SiLU, softmax and norms over any one dim, attention with causal or additive mask and
/// repeated key/value heads, linear from matmul + transpose + bias, two-operand einsum), folds
/// no-ops (dropout p = 0, conversions to the same dtype, detach), computes once what follows from
/// parameters and constants, makes batch norm with fixed statistics a scale and a shift, merges
/// linears that share their input (their weights concatenated by prepack nodes) and what turns
/// several of them alike (rotary embedding), moves RMSNorm's factor behind the products that read
/// it on a GPU, drops dead nodes. Returns what it did, in order. Families named in `without` change
/// nothing: a graph is right without any of them, and less is found in it.
std::vector<Rewrite> canonicalize(graph::Graph& g, const std::set<std::string>& without = {});

/// The names of the families ("attention", "sibling_rotary"), in the order in which they first run.
std::vector<std::string> families();

}  // namespace tessera::rewrite
