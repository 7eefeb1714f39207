// What follows from parameters, buffers and constants alone is computed once.
//
// Masks, position tables, weights times a number: the composed module computes them when it is
// built and again when a parameter changes, never in a call. A value stays in the call when it is
// returned (the caller may change it), when it is large for what it is made from, or when it
// depends on a buffer that the module changes.
#include <algorithm>
#include <set>

#include "graph/operand.h"
#include "graph/ops.h"

#include "rewrite/rewrite.h"

namespace tessera::rewrite {
namespace {

/// Kept for the life of the module: up to this size, or twice what it is made from.
constexpr int64_t small_bytes = int64_t{16} << 20;

class Constants {
 public:
  explicit Constants(const Graph& g) : g_(g) {
    for (const auto& [v, target] : g.mutations) changing_.insert(target);
    for (const ValueId v : g.results()) returned_.insert(v.valid() ? resolve(g, v).base : v);
  }

  [[nodiscard]] bool fixed(ValueId v) const {
    const Value& value = g_.value(v);
    if (value.origin == Origin::user_input) return false;
    if (value.origin != Origin::node)
      return value.target.empty() || !changing_.contains(value.target);
    return fixed_.contains(value.producer);
  }

  /// Nodes in order, so that arguments come first.
  void visit(NodeId id) {
    const Node& n = g_.node(id);
    const std::vector<ValueId> arguments = tensor_arguments(n);
    if (!std::all_of(arguments.begin(), arguments.end(), [&](ValueId v) { return fixed(v); }))
      return;
    const OpKind kind = kind_of(n);
    if (kind == OpKind::opaque || draws(n)) return;
    int64_t reads = 0;
    int64_t writes = 0;
    for (const ValueId v : arguments) reads += g_.value(v).type.bytes();
    for (const ValueId v : n.outputs) {
      if (returned_.contains(v)) return;
      writes += g_.value(v).type.bytes();
    }
    if (is_view(g_, id) || writes <= small_bytes || writes <= 2 * reads) fixed_.insert(id);
  }

  [[nodiscard]] const std::set<NodeId>& nodes() const { return fixed_; }

 private:
  const Graph& g_;
  std::set<std::string> changing_;
  std::set<ValueId> returned_;
  std::set<NodeId> fixed_;
};

/// Views and plain creation ops cost nothing in a call and are read in place: they move to the
/// prepacking only for its own sake.
bool only_for_others(const Graph& g, NodeId id) {
  return is_view(g, id) || tensor_arguments(g.node(id)).empty();
}

}  // namespace

/// Not logged here: most masks vanish later, into the attention that they belong to.
bool rewrite_constants(Graph& g, RewriteLog&) {
  Constants constants(g);
  for (const NodeId id : g.order) constants.visit(id);
  bool changed = false;
  std::set<ValueId> wanted;  // read by prepacked nodes
  for (std::size_t i = g.order.size(); i-- > 0;) {
    const NodeId id = g.order[i];
    Node& n = g.node(id);
    if (!n.prepack) {
      const bool needed = std::any_of(n.outputs.begin(), n.outputs.end(),
                                      [&](ValueId v) { return wanted.contains(v); });
      if (!constants.nodes().contains(id) || (only_for_others(g, id) && !needed)) continue;
      n.prepack = true;
      changed = true;
    }
    for (const ValueId v : tensor_arguments(n)) wanted.insert(v);
  }
  return changed;
}

}  // namespace tessera::rewrite
