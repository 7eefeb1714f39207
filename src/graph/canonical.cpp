// The rewrites to a fixed point, and strides of views brought up to date.
#include "graph/canonical.h"

#include <stdexcept>

#include "graph/operand.h"
#include "graph/ops.h"
#include "graph/rewrite.h"

namespace tessera::graph {
namespace {

using Family = bool (*)(Graph&, RewriteLog&);

void to_fixed_point(Graph& g, RewriteLog& log, std::initializer_list<Family> families) {
  constexpr int most_rounds = 100;
  for (int round = 0; round < most_rounds; ++round) {
    bool changed = false;
    for (const Family family : families) changed |= family(g, log);
    if (!changed) return;
  }
  throw std::logic_error("rewrites do not come to an end");
}

/// Where a rewrite put a value of another layout below, the views above it have other strides than
/// were traced. Dims of one element may have any stride.
void refresh_strides(Graph& g) {
  for (const NodeId id : g.order) {
    const Node& n = g.node(id);
    if (kind_of(n) != OpKind::view) continue;
    for (std::size_t i = 0; i < n.outputs.size(); ++i) {
      TensorType& type = g.value(n.outputs[i]).type;
      const auto step = view_step(g, id, static_cast<int>(i));
      if (!step || step->shape != type.shape) continue;
      for (std::size_t d = 0; d < type.shape.size(); ++d) {
        if (type.shape[d] != 1) type.strides[d] = step->strides[d];
      }
    }
  }
}

}  // namespace

std::vector<Rewrite> canonicalize(Graph& g) {
  RewriteLog log;
  g.erase_dead();
  to_fixed_point(
      g, log,
      {rewrite_noops, rewrite_linear, rewrite_by_value, rewrite_attention, rewrite_grouped_heads});
  to_fixed_point(g, log, {rewrite_sibling_linears, rewrite_noops});
  g.erase_dead();
  refresh_strides(g);
  return log;
}

}  // namespace tessera::graph
