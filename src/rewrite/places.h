#pragma once

#include <vector>

#include "rewrite/rewrite.h"

namespace tessera::rewrite {

/// A view by places, the values that its memory depends on, and how what it is of lies.
struct Looked {
  NodeId view;
  std::vector<ValueId> memories;
  TensorType type;
};

/// Of values that nodes make; an input's places are the caller's. Views between are left out of the
/// graph where the view says where it begins.
std::vector<Looked> looked_at(Graph& g);
/// After the rewrites: where another value stands for the memory, or it lies otherwise, the view
/// gets a copy that lies as it did. Values with gaps count as without.
void keep_memory(Graph& g, const std::vector<Looked>& looked);

}  // namespace tessera::rewrite
