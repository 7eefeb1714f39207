// An operand seen through its views: a strided layout over the storage of a value that really
// exists.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace tessera::graph {

struct Operand {
  ValueId base;  // the value whose storage is read: an input or the output of a computing node
  std::vector<int64_t> shape;    // the logical shape that the reader sees
  std::vector<int64_t> strides;  // in elements over base's storage; 0 where broadcast
  int64_t offset = 0;            // in elements, from base's element 0
  std::vector<NodeId> views;     // the view nodes folded away, from the reader to the base

  [[nodiscard]] int64_t numel() const;
};

/// Follows view ops (view, reshape that needs no copy, transpose, permute, t, expand, unsqueeze,
/// squeeze, select, slice, split, chunk, unbind, narrow, alias, detach, contiguous/clone that
/// changes nothing, dropout that does nothing, _to_copy to the same dtype) down to the value
/// beneath. A view that cannot be expressed with strides ends the walk, and its result is the base,
/// unless splits and permutations behind it can be again.
Operand resolve(const Graph& g, ValueId value);
bool is_view(const Graph& g, NodeId node);
/// One step of `resolve`: an output of a view node over its direct source; nullopt when strides
/// cannot express it.
std::optional<Operand> view_step(const Graph& g, NodeId node, int output);

/// The operand with its shape changed to `shape` when strides can express it (merging and splitting
/// of dims).
std::optional<Operand> reshaped(const Operand& o, const std::vector<int64_t>& shape);

/// `%x[65536,768]:(768,1)+0`.
std::string to_string(const Graph& g, const Operand& o);

}  // namespace tessera::graph
