// The rewrites to a fixed point, and strides of views brought up to date.
#include "rewrite/canonical.h"

#include <algorithm>
#include <set>
#include <stdexcept>

#include "graph/operand.h"
#include "graph/ops.h"

#include "rewrite/equal_halves.h"
#include "rewrite/places.h"
#include "rewrite/rewrite.h"

namespace tessera::rewrite {
namespace {

struct Family {
  std::string_view name;
  bool (*rewrite)(Graph&, RewriteLog&);
};

constexpr Family noops{"noops", rewrite_noops};

/// Families that are run together to a fixed point, in the order of the groups.
const std::vector<std::vector<Family>>& groups() {
  static const std::vector<std::vector<Family>> all = {
      {{"spelling", rewrite_spelling}, {"numbers", rewrite_numbers}, {"einsum", rewrite_einsum}},
      {noops,
       {"constants", rewrite_constants},
       {"parts", rewrite_parts},
       {"linear", rewrite_linear},
       {"by_value", rewrite_by_value},
       {"attention", rewrite_attention},
       {"grouped_heads", rewrite_grouped_heads}},
      {{"batch_norm", rewrite_batch_norm},
       {"row_order", rewrite_row_order},
       {"batches", rewrite_batches},
       noops},
      {{"sibling_linears", rewrite_sibling_linears},
       {"sibling_rotary", rewrite_sibling_rotary},
       noops},
      {{"norm_factor", rewrite_norm_factor}, noops}};
  return all;
}

void to_fixed_point(Graph& g, RewriteLog& log, const std::vector<Family>& families,
                    const std::set<std::string>& without) {
  constexpr int most_rounds = 100;
  for (int round = 0; round < most_rounds; ++round) {
    bool changed = false;
    for (const Family& family : families) {
      if (!without.contains(std::string(family.name))) changed |= family.rewrite(g, log);
    }
    if (!changed) return;
  }
  throw std::logic_error("rewrites do not come to an end");
}

/// `view` demands strides that say it; `reshape` views where it can and copies where it must.
bool loosened(Node& n) {
  if (n.op != "aten.view.default" && n.op != "aten._unsafe_view.default") return false;
  n.op = "aten.reshape.default";
  for (auto& [name, argument] : n.arguments)
    if (name == "size") name = "shape";
  return true;
}

/// Where a rewrite put a value of another layout below, the views above it have other strides than
/// were traced, or are copies. Dims of one element may have any stride.
void refresh_strides(Graph& g) {
  for (const NodeId id : g.order) {
    Node& n = g.node(id);
    if (kind_of(n) != OpKind::view) continue;
    for (std::size_t i = 0; i < n.outputs.size(); ++i) {
      TensorType& type = g.value(n.outputs[i]).type;
      const auto step = view_step(g, id, static_cast<int>(i));
      if (!step && loosened(n)) type.strides = contiguous_strides(type.shape);
      if (!step || step->shape != type.shape) continue;
      for (std::size_t d = 0; d < type.shape.size(); ++d) {
        if (type.shape[d] != 1) type.strides[d] = step->strides[d];
      }
    }
  }
}

/// Whether PyTorch chooses how the node's result lies: attention's backends lay it out each in its
/// own way. Other results of rewrites are laid out as the values that they stand for.
bool layout_may_differ(const Node& n) {
  return !n.rewritten_from.empty() && kind_of(n) == OpKind::attention;
}

/// The result's layout follows the operands' layout: not so for products and plain copies.
bool follows_layout(const Node& n) {
  const OpKind kind = kind_of(n);
  if (kind == OpKind::copy) return is_op(n, "aten._to_copy");
  return kind != OpKind::matmul && kind != OpKind::gather && kind != OpKind::create;
}

/// Above a rewrite whose layout is PyTorch's to choose.
void loosen_views(Graph& g) {
  std::set<ValueId> loose;
  for (const NodeId id : g.order) {
    Node& n = g.node(id);
    const std::vector<ValueId> arguments = tensor_arguments(n);
    const bool reads = std::any_of(arguments.begin(), arguments.end(),
                                   [&](ValueId v) { return loose.contains(v); });
    if (layout_may_differ(n) || (reads && follows_layout(n)))
      loose.insert(n.outputs.begin(), n.outputs.end());
    if (reads) loosened(n);
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

std::vector<std::string> families() {
  std::vector<std::string> out;
  for (const std::vector<Family>& group : groups()) {
    for (const Family& family : group) {
      if (std::find(out.begin(), out.end(), family.name) == out.end())
        out.emplace_back(family.name);
    }
  }
  return out;
}

std::vector<Rewrite> canonicalize(Graph& g, const std::set<std::string>& without) {
  RewriteLog log;
  g.erase_dead();
  const std::vector<Looked> looked = looked_at(g);
  std::set<NodeId> in_calls;
  for (const NodeId id : g.order) {
    if (!g.node(id).prepack) in_calls.insert(id);
  }
  for (const std::vector<Family>& group : groups()) to_fixed_point(g, log, group, without);
  g.erase_dead();
  refresh_strides(g);
  keep_memory(g, looked);
  loosen_views(g);
  mark_equal_halves(g);
  log_constants(g, in_calls, log);
  return log;
}

}  // namespace tessera::rewrite
