// Rotary embedding by rotated halves, on columns of a linear's result: what
// rewrite_sibling_rotary.cpp looks for.
#pragma once

#include <optional>
#include <vector>

#include "rewrite/rewrite.h"

namespace tessera::rewrite {

/// x * cos + cat(-x[d/2:], x[:d/2]) * sin, where x shows columns of a linear's result.
struct Rotation {
  NodeId add;
  std::vector<NodeId> nodes;  // the ops, add among them
  ValueId x;                  // [B, heads, S, d] (`heads_first`) or [B, S, heads, d]
  bool heads_first = false;
  int64_t first = 0;  // column of the linear's result
  int64_t columns = 0;
  int64_t width = 0;  // d
  ValueId cos;
  ValueId sin;
};

/// Neighbouring parts of a split linear, from output `from` on, that are rotated alike and read in
/// no other way.
struct RotaryRun {
  NodeId split;
  std::size_t from = 0;
  std::vector<Rotation> rotations;  // two or more, from left to right
};

/// Whether two parts or more of the linear's result are rotated, each by itself.
bool is_rotated_in_parts(const Graph& g, ValueId linear);

/// The first of the graph.
std::optional<RotaryRun> find_rotary_run(const Graph& g);

}  // namespace tessera::rewrite
