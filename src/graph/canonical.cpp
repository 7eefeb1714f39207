// The rewrites to a fixed point, and strides of views brought up to date.
#include "graph/canonical.h"

#include <algorithm>
#include <set>
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

/// Those of `candidates` that are now computed once and read in calls.
void log_constants(const Graph& g, const std::set<NodeId>& candidates, RewriteLog& log) {
  for (const NodeId id : g.order) {
    const Node& n = g.node(id);
    if (!n.prepack || !candidates.contains(id)) continue;
    const bool read = std::any_of(n.outputs.begin(), n.outputs.end(), [&](ValueId v) {
      const std::vector<Use> uses = g.uses(v);
      return std::any_of(uses.begin(), uses.end(),
                         [&](const Use& u) { return !g.node(u.node).prepack; });
    });
    if (!read) continue;
    log.push_back({.what = "computed once, from parameters and constants",
                   .result = n.name,
                   .nodes = n.covers});
  }
}

}  // namespace

std::vector<Rewrite> canonicalize(Graph& g) {
  RewriteLog log;
  g.erase_dead();
  std::set<NodeId> in_calls;
  for (const NodeId id : g.order) {
    if (!g.node(id).prepack) in_calls.insert(id);
  }
  to_fixed_point(g, log, {rewrite_spelling, rewrite_einsum});
  to_fixed_point(g, log,
                 {rewrite_noops, rewrite_constants, rewrite_linear, rewrite_by_value,
                  rewrite_attention, rewrite_grouped_heads});
  to_fixed_point(g, log, {rewrite_batch_norm, rewrite_scale, rewrite_batches, rewrite_noops});
  to_fixed_point(g, log, {rewrite_sibling_linears, rewrite_noops});
  g.erase_dead();
  refresh_strides(g);
  log_constants(g, in_calls, log);
  return log;
}

}  // namespace tessera::graph
